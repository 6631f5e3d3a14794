//! The space that is left on the file system of the data. Writes of new data are refused while it is
//! less than a reserve, because a flush, a compaction or a journal write that meets a full disk poisons
//! the engine for good. Other programs may use up the reserve: all writes are refused then, and the
//! engine lives until there is space again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use quire_storage::backend::Room;

/// The size of a file system and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that this process may still use.
    pub available_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Returns the space of the file system that holds a path, or `None` if the system does not tell.
pub type SpaceProbe = Arc<dyn Fn(&Path) -> Option<DiskSpace> + Send + Sync>;

/// The bytes that are kept free by default: what compactions under way need for their new tables
/// before they remove the old ones.
pub const DISK_RESERVE_BYTES: u64 = 500 << 20;

/// The reserve is never more than this share of the file system, so that a small one can be used.
const RESERVE_SHARE_MAX: u64 = 4;

/// While less than this is left, or a quarter of the reserve, no commit is written. It is for what
/// deletes write between two looks.
const LAST_BYTES: u64 = 16 << 20;

/// Asks the operating system.
pub(crate) fn system_probe() -> SpaceProbe {
    Arc::new(|path| {
        let found = rustix::fs::statvfs(path).ok()?;
        Some(DiskSpace {
            available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        })
    })
}

/// Compares the space that is left with the reserve.
pub(crate) struct SpaceGauge {
    data: PathBuf,
    probe: SpaceProbe,
    reserve_bytes: u64,
    /// A [`Room`], as a number.
    room: AtomicU8,
}

impl SpaceGauge {
    /// Measures the file system of `data` with `probe`; `reserve_bytes` of it stay free.
    pub fn new(data: PathBuf, probe: SpaceProbe, reserve_bytes: u64) -> Self {
        Self { data, probe, reserve_bytes, room: AtomicU8::new(Room::Enough as u8) }
    }

    /// Measures. `unflushed_bytes` in memory will need space for their tables while the journal
    /// still holds them.
    pub fn look(&self, unflushed_bytes: u64) {
        let room = (self.probe)(&self.data).map_or(Room::Enough, |space| {
            let reserve = self.reserve_bytes.min(space.total_bytes / RESERVE_SHARE_MAX);
            if space.available_bytes < LAST_BYTES.min(reserve / 4) {
                Room::None
            } else if space.available_bytes < reserve.saturating_add(unflushed_bytes) {
                Room::Reserve
            } else {
                Room::Enough
            }
        });
        self.room.store(room as u8, Ordering::Relaxed);
    }

    /// Returns true if the disk has `bytes` free beside the reserve, or if the system does not tell.
    pub fn has_room_for(&self, bytes: u64) -> bool {
        (self.probe)(&self.data).is_none_or(|space| {
            let reserve = self.reserve_bytes.min(space.total_bytes / RESERVE_SHARE_MAX);
            space.available_bytes >= reserve.saturating_add(bytes)
        })
    }

    /// Returns which commits there was room for at the last look.
    pub fn room(&self) -> Room {
        let room = self.room.load(Ordering::Relaxed);
        let known = [Room::None, Room::Reserve, Room::Enough];
        known.into_iter().find(|known| *known as u8 == room).unwrap_or(Room::Enough)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_share_of_a_small_disk_and_grows_with_what_is_in_memory() {
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
            gauge.look(unflushed);
            assert_eq!(gauge.room(), room, "{total} {available} {unflushed}");
            assert_eq!(gauge.has_room_for(unflushed), room == Room::Enough);
        }
        assert!(system_probe()(Path::new("/")).unwrap().total_bytes > 0);
        assert_eq!(system_probe()(Path::new("/no such file")), None);
    }
}
