//! Progress on a terminal: a bar if the end is known, a counter if it is not; nothing without a
//! terminal. Messages are printed above it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Read;

/// The progress so far.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Counts bytes, up to `total` if it is known.
    pub(crate) fn start(total: Option<u64>, quiet: bool) -> Progress {
        let template = match total {
            Some(_) => "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            None => "{spinner} {bytes} {bytes_per_sec}",
        };
        Progress::with(total, quiet, template)
    }

    /// Counts documents, up to `total` if it is known.
    pub(crate) fn documents(total: Option<u64>, quiet: bool) -> Progress {
        let template = match total {
            Some(_) => "{bar:30} {human_pos}/{human_len} documents {eta} left",
            None => "{spinner} {human_pos} documents",
        };
        Progress::with(total, quiet, template)
    }

    fn with(total: Option<u64>, quiet: bool, template: &str) -> Progress {
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::with_draw_target(total, target)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar }
    }

    /// Adds `count` to the progress.
    pub(crate) fn add(&self, count: u64) {
        self.bar.inc(count);
    }

    /// Writes a line to the standard error stream.
    pub(crate) fn complain(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Counts the bytes that are read.
pub(crate) struct CountingReader<R> {
    input: R,
    progress: Progress,
}

impl<R> CountingReader<R> {
    pub(crate) fn new(input: R, progress: &Progress) -> Self {
        CountingReader { input, progress: progress.clone() }
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(out)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}
