//! The files of the history. Each start begins a file, and so does a full one; the oldest go when all
//! together are too large or too old. A file is only appended to, and no sample is synced: a crash of
//! the process loses nothing, a power cut the samples of the last seconds.

use super::record::{Decoder, Encoder};
use super::{AGE_MAX_MS, SAMPLES_MAX, time_of};
use quire_document::DocBuf;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first bytes of each file.
const MAGIC: &[u8; 8] = b"QUIREHS1";
/// The end of the name of each file.
const ENDING: &str = ".samples";
/// The bytes after which a file is full. It is also the largest file that is read whole.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the history keeps.
#[derive(Clone, Copy, Debug)]
pub struct HistoryBounds {
    /// The bytes of all files together.
    pub bytes_max: u64,
    /// The age of the samples, in milliseconds.
    pub age_max_ms: i64,
}

impl HistoryBounds {
    /// Returns the bounds with a size in megabytes and the usual age.
    pub fn of_megabytes(megabytes: u64) -> HistoryBounds {
        HistoryBounds { bytes_max: megabytes << 20, age_max_ms: AGE_MAX_MS }
    }
}

/// Writes the history of a server.
pub struct History {
    folder: PathBuf,
    open: Option<OpenFile>,
}

struct OpenFile {
    file: File,
    bytes: u64,
    encoder: Encoder,
}

/// A file of the folder: the time of its first sample, and its size.
struct Listed {
    from_ms: i64,
    bytes: u64,
    path: PathBuf,
}

impl History {
    /// Returns the writer of a folder, which is created with the first sample.
    pub fn new(folder: PathBuf) -> History {
        History { folder, open: None }
    }

    /// Appends a sample, and removes the oldest files beyond the bounds.
    ///
    /// # Errors
    /// The errors of the file operations. The next sample begins a new file.
    pub fn append(&mut self, sample: &DocBuf, bounds: HistoryBounds) -> io::Result<()> {
        let now_ms = time_of(sample.as_doc()).unwrap_or(0);
        let mut open = match self.open.take() {
            Some(open) if open.bytes < FILE_BYTES_MAX => open,
            _ => {
                self.remove_oldest(bounds, now_ms)?;
                self.begin_file(now_ms)?
            }
        };
        let mut record = Vec::with_capacity(512);
        open.encoder.encode(sample.as_doc(), &mut record);
        open.file.write_all(&record)?;
        open.bytes += record.len() as u64;
        self.open = Some(open);
        Ok(())
    }

    /// Creates a file that only its owner can read. It is later in the order than those that exist,
    /// also if the clock was set back.
    fn begin_file(&self, now_ms: i64) -> io::Result<OpenFile> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let last = listed(&self.folder)?.last().map_or(0, |file| file.from_ms);
        let path = self.folder.join(format!("{}{ENDING}", now_ms.max(last.saturating_add(1))));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(MAGIC)?;
        Ok(OpenFile { file, bytes: MAGIC.len() as u64, encoder: Encoder::default() })
    }

    /// Removes the oldest files until a new one fits, and those whose samples are all too old.
    fn remove_oldest(&self, bounds: HistoryBounds, now_ms: i64) -> io::Result<()> {
        let files = listed(&self.folder)?;
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let ends = files.iter().skip(1).map(|next| next.from_ms).chain([now_ms]);
        for (file, until_ms) in files.iter().zip(ends) {
            let is_old = now_ms.saturating_sub(until_ms) > bounds.age_max_ms;
            if !is_old && bytes.saturating_add(FILE_BYTES_MAX) <= bounds.bytes_max {
                break;
            }
            std::fs::remove_file(&file.path)?;
            bytes = bytes.saturating_sub(file.bytes);
        }
        Ok(())
    }
}

/// Returns the samples from `since_ms` to `until_ms`, oldest first, at most [`SAMPLES_MAX`]: of more,
/// evenly spaced ones and the last. A file or a record that is damaged is left out. The server may be
/// writing.
///
/// # Errors
/// The errors of reading the folder; `NotFound` if there is no history.
pub fn read(folder: &Path, since_ms: i64, until_ms: i64) -> io::Result<Vec<DocBuf>> {
    if !folder.is_dir() {
        return Err(ErrorKind::NotFound.into());
    }
    let mut samples = Thinned::default();
    // All files are read: where the clock was set back, a file may have later samples than the next.
    for file in listed(folder)? {
        let Ok(bytes) = read_file(&file.path) else { continue };
        let Some(records) = bytes.strip_prefix(MAGIC) else { continue };
        let mut decoder = Decoder::new(records);
        while let Some(sample) = decoder.next() {
            let at = time_of(sample.as_doc()).unwrap_or(0);
            if (since_ms..=until_ms).contains(&at) {
                samples.push(sample);
            }
        }
    }
    Ok(samples.end())
}

/// Reads a file, at most twice as much as a full one has.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the files of a folder in the order of their samples; none if there is no folder.
fn listed(folder: &Path) -> io::Result<Vec<Listed>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        if let Some(from_ms) = name.and_then(|number| number.parse().ok()) {
            files.push(Listed { from_ms, bytes: entry.metadata()?.len(), path: entry.path() });
        }
    }
    files.sort_by_key(|file| file.from_ms);
    Ok(files)
}

/// Samples of which only every `stride`-th is kept, so that few are in memory.
struct Thinned {
    kept: Vec<DocBuf>,
    last: Option<DocBuf>,
    stride: usize,
    count: usize,
}

impl Default for Thinned {
    fn default() -> Self {
        Thinned { kept: Vec::new(), last: None, stride: 1, count: 0 }
    }
}

impl Thinned {
    fn push(&mut self, sample: DocBuf) {
        let is_kept = self.count.is_multiple_of(self.stride);
        self.count += 1;
        if !is_kept {
            self.last = Some(sample);
            return;
        }
        self.last = None;
        if self.kept.len() + 1 == SAMPLES_MAX {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
            if !(self.count - 1).is_multiple_of(self.stride) {
                self.last = Some(sample);
                return;
            }
        }
        self.kept.push(sample);
    }

    fn end(mut self) -> Vec<DocBuf> {
        self.kept.extend(self.last);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::{Value, doc};

    const EVERYTHING: HistoryBounds = HistoryBounds { bytes_max: 1 << 40, age_max_ms: i64::MAX };

    fn sample(at_ms: i64) -> DocBuf {
        doc! { "localTime": Value::Date(at_ms), "n": (at_ms * 7) }
    }

    fn times(folder: &Path, since_ms: i64, until_ms: i64) -> Vec<i64> {
        let samples = read(folder, since_ms, until_ms).unwrap();
        samples.iter().filter_map(|sample| time_of(sample.as_doc())).collect()
    }

    #[test]
    fn a_history_goes_on_after_a_restart_and_a_crash() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("history");
        assert_eq!(read(&folder, 0, 9).unwrap_err().kind(), ErrorKind::NotFound);
        let mut history = History::new(folder.clone());
        (1..=3).for_each(|at| history.append(&sample(at * 10), EVERYTHING).unwrap());
        // The process was killed while it wrote a record.
        let first = listed(&folder).unwrap().remove(0);
        OpenOptions::new()
            .append(true)
            .open(&first.path)
            .unwrap()
            .write_all(&[0, 0, 0, 9])
            .unwrap();
        // The clock was set back.
        let mut history = History::new(folder.clone());
        (1..=3).for_each(|at| history.append(&sample(at * 5), EVERYTHING).unwrap());
        assert_eq!(times(&folder, 0, i64::MAX), [10, 20, 30, 5, 10, 15]);
        assert_eq!(times(&folder, 12, 20), [20, 15]);
    }

    #[test]
    fn the_oldest_files_go_when_all_are_too_large_or_too_old() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        for at in 1..=6 {
            History::new(folder.into()).append(&sample(at), EVERYTHING).unwrap();
        }
        let bytes: u64 = listed(folder).unwrap().iter().map(|file| file.bytes).sum();
        let two_thirds = bytes * 2 / 3 + FILE_BYTES_MAX;
        let bounds = HistoryBounds { bytes_max: two_thirds, age_max_ms: i64::MAX };
        History::new(folder.into()).append(&sample(7), bounds).unwrap();
        assert_eq!(times(folder, 0, 100), [3, 4, 5, 6, 7]);
        let bounds = HistoryBounds { bytes_max: 1 << 40, age_max_ms: 5 };
        History::new(folder.into()).append(&sample(11), bounds).unwrap();
        assert_eq!(times(folder, 0, 100), [5, 6, 7, 11]);
    }

    #[test]
    fn of_many_samples_evenly_spaced_ones_and_the_last_are_returned() {
        let directory = tempfile::tempdir().unwrap();
        let mut history = History::new(directory.path().into());
        (0..=5000).for_each(|at| history.append(&sample(at), EVERYTHING).unwrap());
        let found = times(directory.path(), 0, i64::MAX);
        assert!((SAMPLES_MAX / 2..=SAMPLES_MAX).contains(&found.len()), "{}", found.len());
        assert_eq!((found[0], found[found.len() - 1]), (0, 5000));
        let stride = found[1];
        assert!(
            found[..found.len() - 1].iter().enumerate().all(|(n, at)| *at == n as i64 * stride)
        );
    }
}
