//! The free space of the file system of the data. While it is below a reserve, commits that add
//! data are refused, so that there is space for merges and deletes. If other programs use up the
//! reserve, all writes are refused, and the engine keeps running until there is space again. A commit
//! that meets a full disk all the same fails, and a flush or a merge waits; only a sync that meets
//! one ends all writes until a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use quire_storage::backend::Room;

/// The size and the free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The bytes that this process may still use.
    pub available_bytes: u64,
    /// The size in bytes.
    pub total_bytes: u64,
}

/// Returns the space of the file system that holds a path, or `None` if the system does not report
/// it.
pub type SpaceProbe = Arc<dyn Fn(&Path) -> Option<DiskSpace> + Send + Sync>;

/// The default reserve, in bytes. Running compactions need it for new tables before they remove the
/// old ones.
pub const DISK_RESERVE_BYTES: u64 = 500 << 20;

/// The reserve is at most one part in `RESERVE_SHARE_MAX` of the file system, so that a small file
/// system can be used.
const RESERVE_SHARE_MAX: u64 = 4;

/// While less than this is free, or less than a quarter of the reserve, no commit at all is
/// written. The space up to that bound is for the deletes between two measurements.
const LAST_BYTES: u64 = 16 << 20;

/// Returns a probe that asks the operating system.
pub(crate) fn system_probe() -> SpaceProbe {
    Arc::new(|path| {
        let found = rustix::fs::statvfs(path).ok()?;
        Some(DiskSpace {
            available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        })
    })
}

/// Compares the free space with the reserve.
pub(crate) struct SpaceGauge {
    data: PathBuf,
    probe: SpaceProbe,
    reserve_bytes: u64,
    /// A [`Room`] as a number.
    room: AtomicU8,
}

impl SpaceGauge {
    /// Returns a gauge of the file system of `data`, which `probe` measures. `reserve_bytes` stay
    /// free.
    pub fn new(data: PathBuf, probe: SpaceProbe, reserve_bytes: u64) -> Self {
        Self { data, probe, reserve_bytes, room: AtomicU8::new(Room::Enough as u8) }
    }

    /// Measures the free space, and again after `give_back` if it is not enough: that frees space that
    /// is not in use, or waits until another thread has done so. Counts `unflushed_bytes` as used:
    /// the memtables need space for their tables while the journal still holds the same data.
    pub fn look(&self, unflushed_bytes: u64, give_back: impl FnOnce()) {
        let mut room = self.measure(unflushed_bytes);
        if room != Room::Enough {
            give_back();
            room = self.measure(unflushed_bytes);
        }
        self.room.store(room as u8, Ordering::Relaxed);
    }

    fn measure(&self, unflushed_bytes: u64) -> Room {
        (self.probe)(&self.data).map_or(Room::Enough, |space| {
            if space.available_bytes < self.last(space) {
                Room::None
            } else if space.available_bytes < self.reserve(space).saturating_add(unflushed_bytes) {
                Room::Reserve
            } else {
                Room::Enough
            }
        })
    }

    fn reserve(&self, space: DiskSpace) -> u64 {
        self.reserve_bytes.min(space.total_bytes / RESERVE_SHARE_MAX)
    }

    fn last(&self, space: DiskSpace) -> u64 {
        LAST_BYTES.min(self.reserve(space) / 4)
    }

    /// Returns true if `bytes` are free in addition to the reserve, or if the system does not
    /// report it.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        (self.probe)(&self.data)
            .is_none_or(|space| space.available_bytes >= self.reserve(space).saturating_add(bytes))
    }

    /// Returns true if `bytes` are free, or if the system does not report it.
    pub fn is_free(&self, bytes: u64) -> bool {
        (self.probe)(&self.data).is_none_or(|space| space.available_bytes >= bytes)
    }

    /// Returns true if `bytes` are free in addition to the space that is kept for deletes, or if the
    /// system does not report it.
    pub fn spares_last(&self, bytes: u64) -> bool {
        (self.probe)(&self.data)
            .is_none_or(|space| space.available_bytes >= self.last(space).saturating_add(bytes))
    }

    /// Lets no commit be written until the next measurement.
    pub fn close(&self) {
        self.room.store(Room::None as u8, Ordering::Relaxed);
    }

    /// Returns which commits had room at the last measurement.
    pub fn room(&self) -> Room {
        let room = self.room.load(Ordering::Relaxed);
        let known = [Room::None, Room::Reserve, Room::Enough];
        known.into_iter().find(|known| *known as u8 == room).unwrap_or(Room::Enough)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::{Barrier, mpsc};

    use super::*;

    /// The second one waits until the first one has given space back, and must see that.
    #[test]
    fn two_threads_that_look_at_once_both_see_what_was_given_back() {
        let free = Arc::new(AtomicU64::new(50));
        let probed = Arc::clone(&free);
        let probe = move |_: &Path| {
            let available_bytes = probed.load(Ordering::SeqCst);
            Some(DiskSpace { available_bytes, total_bytes: 1000 })
        };
        let gauge = SpaceGauge::new(PathBuf::new(), Arc::new(probe), 100);
        let both_measured = Barrier::new(2);
        let (first_ends, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gauge.look(0, || {
                    both_measured.wait();
                    free.store(500, Ordering::SeqCst);
                });
                first_ends.send(()).unwrap();
            });
            gauge.look(0, || {
                both_measured.wait();
                ended.recv().unwrap();
            });
        });
        assert_eq!(gauge.room(), Room::Enough);
    }

    #[test]
    fn the_reserve_is_a_share_of_a_small_disk_and_grows_with_unflushed_memory() {
        let gauge = |total_bytes, available_bytes| {
            let probe = move |_: &Path| Some(DiskSpace { available_bytes, total_bytes });
            SpaceGauge::new(PathBuf::new(), Arc::new(probe), 100)
        };
        for (total, available, unflushed, room) in [
            (1000, 100, 0, Room::Enough),
            (1000, 99, 0, Room::Reserve),
            (1000, 109, 10, Room::Reserve),
            (1000, 25, 10, Room::Reserve),
            (1000, 24, 0, Room::None),
            (200, 50, 0, Room::Enough),
            (200, 49, 0, Room::Reserve),
            (200, 11, 0, Room::None),
        ] {
            let gauge = gauge(total, available);
            gauge.look(unflushed, || {});
            assert_eq!(gauge.room(), room, "{total} {available} {unflushed}");
            assert_eq!(gauge.has_room_for(unflushed), room == Room::Enough);
            assert_eq!(gauge.spares_last(0), room != Room::None);
            assert!(gauge.is_free(available) && !gauge.is_free(available + 1));
        }
        assert!(system_probe()(Path::new("/")).unwrap().total_bytes > 0);
        assert_eq!(system_probe()(Path::new("/no such file")), None);
    }
}
