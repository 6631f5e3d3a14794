//! Computes what a disk can hold after a power cut, from the calls before it.
//!
//! The model is the weakest that POSIX allows: of the unsynced writes of a file, any combination of
//! pages can be on disk, and the length can have grown without them; of the unsynced changes of a
//! directory, any prefix is on disk. Syncing a file does not sync its name. (The method is that of
//! ALICE, Pillai and others, OSDI 2014.)

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use quire_storage::rng::Rng;

use super::trace::{Event, Number};

const PAGE: usize = 4096;

/// A change of a file that no sync has made durable yet.
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

/// One file: its pages by their offset, and its length.
#[derive(Clone, Default)]
struct Content {
    pages: BTreeMap<u64, Vec<u8>>,
    length: u64,
}

#[derive(Default)]
struct File {
    durable: Content,
    pending: Vec<Change>,
}

/// A change of a directory's entries.
enum Naming {
    Create(Number),
    MakeDirectory,
    Rename(PathBuf),
    Remove,
    Link(PathBuf),
}

struct Named {
    naming: Naming,
    path: PathBuf,
    /// The directory that it changes, by number, because its own name can change.
    directory: Number,
    /// True if it is durable.
    durable: bool,
}

/// A disk that recorded calls change.
#[derive(Default)]
pub struct Disk {
    files: HashMap<Number, File>,
    names: Vec<Named>,
    /// The current paths of directories.
    directories: HashMap<Number, PathBuf>,
}

impl Content {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (mut at, mut bytes) = (at, bytes);
        while !bytes.is_empty() {
            let start = usize::try_from(at % PAGE as u64).unwrap();
            let (piece, rest) = bytes.split_at(bytes.len().min(PAGE - start));
            let page = self.pages.entry(at / PAGE as u64).or_insert_with(|| vec![0; PAGE]);
            page[start..start + piece.len()].copy_from_slice(piece);
            at += piece.len() as u64;
            bytes = rest;
        }
        self.length = self.length.max(at);
    }

    fn truncate(&mut self, length: u64) {
        self.pages.retain(|page, _| page * (PAGE as u64) < length);
        if let Some(page) = self.pages.get_mut(&(length / PAGE as u64)) {
            page[usize::try_from(length % PAGE as u64).unwrap()..].fill(0);
        }
        self.length = length;
    }

    fn write_to(&self, path: &Path) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::create(path).unwrap();
        file.set_len(self.length).unwrap();
        for (page, bytes) in &self.pages {
            let at = page * PAGE as u64;
            let length = usize::try_from((self.length - at).min(PAGE as u64)).unwrap();
            file.write_all_at(&bytes[..length], at).unwrap();
        }
    }
}

impl File {
    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Write(at, bytes) => self.durable.write(at, &bytes),
                Change::Truncate(length) => self.durable.truncate(length),
            }
        }
    }

    /// Returns the content after a power cut: each unsynced page with a chance of `kept` in 4,
    /// truncations in order.
    fn after_power_cut(&self, rng: &mut Rng, kept: u64) -> Content {
        let mut content = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Truncate(length) if rng.below(4) < kept => content.truncate(*length),
                Change::Truncate(_) => {}
                Change::Write(at, bytes) => {
                    let mut done = 0;
                    while done < bytes.len() {
                        let place = at + done as u64;
                        let room = PAGE - usize::try_from(place % PAGE as u64).unwrap();
                        let end = bytes.len().min(done + room);
                        if rng.below(4) < kept {
                            content.write(place, &bytes[done..end]);
                        } else if rng.below(4) < kept {
                            // The new length is on disk, the data are not.
                            content.length = content.length.max(at + end as u64);
                        }
                        done = end;
                    }
                }
            }
        }
        content
    }
}

impl Disk {
    /// Applies one call.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(number, path) => {
                self.files.insert(*number, File::default());
                self.name(Naming::Create(*number), path);
            }
            Event::MakeDirectory(number, path) => {
                self.directories.insert(*number, path.clone());
                self.name(Naming::MakeDirectory, path);
            }
            Event::Write(number, at, bytes) => {
                let file = self.files.entry(*number).or_default();
                file.pending.push(Change::Write(*at, bytes.clone()));
            }
            Event::Truncate(number, length) => {
                self.files.entry(*number).or_default().pending.push(Change::Truncate(*length));
            }
            Event::Sync(number) if *number == 0 || self.directories.contains_key(number) => {
                let inside = |named: &&mut Named| named.directory == *number;
                self.names.iter_mut().filter(inside).for_each(|named| named.durable = true);
            }
            Event::Sync(number) => self.files.entry(*number).or_default().sync(),
            Event::Rename(from, to) => {
                for path in self.directories.values_mut() {
                    if let Ok(rest) = path.strip_prefix(from) {
                        *path =
                            if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                    }
                }
                self.name(Naming::Rename(from.clone()), to);
            }
            Event::Remove(path) => self.name(Naming::Remove, path),
            Event::Link(from, to) => self.name(Naming::Link(from.clone()), to),
        }
    }

    fn name(&mut self, naming: Naming, path: &Path) {
        let above = path.parent().unwrap_or(Path::new(""));
        let found = self.directories.iter().find(|(_, path)| *path == above);
        let directory = found.map_or(0, |(number, _)| *number);
        self.names.push(Named { naming, path: path.to_owned(), directory, durable: false });
    }

    /// Writes the state after a power cut below `target`. The seed decides which unsynced changes
    /// are there.
    pub fn after_power_cut(&self, seed: u64, target: &Path) {
        let mut rng = Rng::new(seed);
        // None, some, most or all of the unsynced changes.
        let kept = rng.below(5);
        let mut cut: HashMap<Number, bool> = HashMap::new();
        let mut tree: BTreeMap<PathBuf, Option<Number>> = BTreeMap::new();
        for named in &self.names {
            let is_cut = cut.entry(named.directory).or_default();
            if !named.durable && (*is_cut || rng.below(4) >= kept) {
                *is_cut = true;
                continue;
            }
            let there = |path: &Path| {
                path.parent().is_none_or(|above| {
                    above.as_os_str().is_empty() || tree.get(above) == Some(&None)
                })
            };
            if !there(&named.path) {
                continue;
            }
            match &named.naming {
                Naming::Create(number) => {
                    tree.insert(named.path.clone(), Some(*number));
                }
                Naming::MakeDirectory => {
                    tree.insert(named.path.clone(), None);
                }
                Naming::Remove => {
                    tree.remove(&named.path);
                }
                Naming::Link(from) => {
                    if let Some(of) = tree.get(from).copied() {
                        tree.insert(named.path.clone(), of);
                    }
                }
                Naming::Rename(from) => {
                    let moved: Vec<_> =
                        tree.keys().filter(|path| path.starts_with(from)).cloned().collect();
                    for path in moved {
                        let of = tree.remove(&path).flatten();
                        let rest = path.strip_prefix(from).unwrap();
                        let to = &named.path;
                        let to =
                            if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                        tree.insert(to, of);
                    }
                }
            }
        }
        for (path, number) in &tree {
            let path = target.join(path);
            match number.map(|number| self.files.get(&number)) {
                None => std::fs::create_dir_all(&path).unwrap(),
                Some(None) => {}
                Some(Some(file)) => file.after_power_cut(&mut rng, kept).write_to(&path),
            }
        }
    }
}
