//! Records what a process does to the files below one directory, in order: the library that
//! `tests/it/power_crash` loads into the process that it records (`LD_PRELOAD`). It replaces the C
//! library's functions on files, which Rust's standard library calls, and forwards the calls. A
//! rename by a direct system call (as the crate `tempfile` makes it) is detected when its directory
//! is synced.
//!
//! `QUIRE_RECORDER_ROOT` names the directory, `QUIRE_RECORDER_LOG` the file of the record. An event
//! is a tag of one byte, then numbers as 8 bytes little-endian and texts as their length and their
//! bytes; `tests/it/power_crash/trace.rs` reads it. A file keeps one number from its creation on,
//! under any name.
//!
//! `QUIRE_RECORDER_FAULT` makes calls fail: `eio`, `enospc`, `short`, `tables`, `records`, `read` or
//! `kill`, and the number of the call, as in `eio 120`. It counts the calls that write, truncate or
//! sync a file, except those on the file that was created first, which belongs to the test. `short`
//! writes half of the bytes; after `enospc` and `short` all later writing calls fail too, as on a
//! disk that stays full; after `eio` later calls succeed. `tables` counts the writes of at least 64
//! KB, as they are made to tables, and three of them meet a full disk, the first one after half of
//! its bytes; `records` does so with smaller writes. `read` counts the calls that read a file, and
//! one of them returns EIO. `kill` ends the process after that many events. Linux only.

#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod calls {
    use libc::{c_char, c_int, c_long, c_void, iovec, mode_t, off_t, size_t, ssize_t};
    use std::collections::HashMap;
    use std::ffi::CStr;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The bytes of a write that only tables get.
    const TABLE_WRITE_MIN: usize = 64 << 10;

    const CREATE: u8 = 1;
    const MAKE_DIRECTORY: u8 = 2;
    const WRITE: u8 = 3;
    const TRUNCATE: u8 = 4;
    const SYNC: u8 = 5;
    const RENAME: u8 = 6;
    const REMOVE: u8 = 7;
    const LINK: u8 = 8;

    /// The recorder: the recorded directory, the output and the fault.
    struct Recorder {
        root: Vec<u8>,
        log: c_int,
        /// The numbers of files and directories by inode.
        numbers: HashMap<u64, u64>,
        last: u64,
        /// The inodes of files by their paths below the root.
        names: HashMap<Vec<u8>, u64>,
        fault: Option<Fault>,
        /// The number of calls so far that a fault can hit.
        calls: u64,
        /// The number of events in the record.
        events: std::cell::Cell<u64>,
    }

    /// The fault to inject: the number of the call, and how it fails.
    #[derive(Clone, Copy)]
    struct Fault {
        kind: Kind,
        at: u64,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Broken,
        Full,
        Short,
        FullForTables,
        FullForRecords,
        Unreadable,
        Killed,
    }

    impl Fault {
        fn parse(text: &[u8]) -> Option<Fault> {
            let text = std::str::from_utf8(text).ok()?;
            let (kind, at) = text.split_once(' ')?;
            let kind = match kind {
                "eio" => Kind::Broken,
                "enospc" => Kind::Full,
                "short" => Kind::Short,
                "tables" => Kind::FullForTables,
                "records" => Kind::FullForRecords,
                "read" => Kind::Unreadable,
                "kill" => Kind::Killed,
                _ => return None,
            };
            Some(Fault { kind, at: at.parse().ok()? })
        }
    }

    /// The outcome that the recorder decides for a call.
    enum Verdict {
        Works,
        /// The call fails with this error number.
        Fails(c_int),
        /// The call writes half of the bytes.
        Half,
    }

    static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

    /// Returns the recorder, created at the first call; `None` in a process that is not recorded.
    /// The lock is held during a call, so that the record has the order of the calls.
    fn recorder() -> MutexGuard<'static, Option<Recorder>> {
        let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
        if recorder.is_none() {
            let variable = |name: &CStr| {
                // SAFETY: the name is a C string, and the result is a C string or null.
                let value = unsafe { libc::getenv(name.as_ptr()) };
                // SAFETY: as above; nothing in this process changes its environment.
                (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
            };
            let root = variable(c"QUIRE_RECORDER_ROOT");
            if let (Some(root), Some(log)) = (root, variable(c"QUIRE_RECORDER_LOG")) {
                let flags = libc::O_CREAT | libc::O_APPEND | libc::O_WRONLY | libc::O_CLOEXEC;
                // SAFETY: opens a file by a C string.
                let log = unsafe {
                    libc::syscall(libc::SYS_openat, libc::AT_FDCWD, log.as_ptr(), flags, 0o600)
                };
                let mut made = Recorder {
                    root: root.to_bytes().to_vec(),
                    log: log as c_int,
                    numbers: HashMap::new(),
                    last: 0,
                    names: HashMap::new(),
                    fault: variable(c"QUIRE_RECORDER_FAULT")
                        .and_then(|text| Fault::parse(text.to_bytes())),
                    calls: 0,
                    events: std::cell::Cell::new(0),
                };
                if let Some(inode) = inode_at(libc::AT_FDCWD, root.as_ptr()) {
                    made.numbers.insert(inode, 0);
                }
                *recorder = Some(made);
            }
        }
        recorder
    }

    fn status(call: impl FnOnce(*mut libc::stat) -> c_long) -> Option<libc::stat> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: zeros are a valid `stat`, and the call fills it or fails.
        (call(found.as_mut_ptr()) == 0).then(|| unsafe { found.assume_init() })
    }

    fn inode_at(at: c_int, path: *const c_char) -> Option<u64> {
        // SAFETY: the path is a C string of the caller.
        let found = status(|out| unsafe {
            libc::syscall(libc::SYS_newfstatat, at, path, out, libc::AT_SYMLINK_NOFOLLOW)
        });
        found.map(|found| found.st_ino)
    }

    fn inode_of(file: c_int) -> Option<u64> {
        // SAFETY: asks about a descriptor, valid or not.
        status(|out| unsafe { libc::syscall(libc::SYS_fstat, file, out) }).map(|found| found.st_ino)
    }

    impl Recorder {
        /// Returns the path below the root; `None` if it is not below the root.
        fn inside(&self, at: c_int, path: *const c_char) -> Option<Vec<u8>> {
            // SAFETY: the path is a C string of the caller.
            let path = unsafe { CStr::from_ptr(path) }.to_bytes();
            let whole = if path.starts_with(b"/") {
                path.to_vec()
            } else {
                let of = if at == libc::AT_FDCWD {
                    "/proc/self/cwd\0".to_owned()
                } else {
                    format!("/proc/self/fd/{at}\0")
                };
                let mut base = vec![0; 4096];
                // SAFETY: reads a link into a buffer of this length.
                let length = unsafe {
                    let (of, to) = (of.as_ptr(), base.as_mut_ptr());
                    libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, of, to, base.len())
                };
                base.truncate(usize::try_from(length).ok()?);
                base.push(b'/');
                base.extend_from_slice(path);
                base
            };
            let rest = whole.strip_prefix(&self.root[..])?;
            rest.strip_prefix(b"/").map(<[u8]>::to_vec)
        }

        fn number(&mut self, inode: u64) -> u64 {
            self.last += 1;
            self.numbers.insert(inode, self.last);
            self.last
        }

        /// Counts a call on a file and decides its outcome. `written` is the number of bytes that it
        /// writes, 0 if it is no write.
        fn judge(&mut self, file: c_int, written: usize) -> Verdict {
            let Some(fault) = self.fault.filter(|fault| fault.kind != Kind::Unreadable) else {
                return Verdict::Works;
            };
            let number = inode_of(file).and_then(|inode| self.numbers.get(&inode));
            if number.is_none_or(|number| *number <= 1) {
                return Verdict::Works;
            }
            let counts = match fault.kind {
                Kind::FullForTables => written >= TABLE_WRITE_MIN,
                Kind::FullForRecords => (1..TABLE_WRITE_MIN).contains(&written),
                _ => true,
            };
            if !counts {
                return Verdict::Works;
            }
            self.calls += 1;
            let writes = written > 0;
            match fault.kind {
                Kind::FullForTables | Kind::FullForRecords => {
                    match (fault.at..fault.at + 3).contains(&self.calls) {
                        // The first of three writes half.
                        true if self.calls == fault.at => Verdict::Half,
                        true => Verdict::Fails(libc::ENOSPC),
                        false => Verdict::Works,
                    }
                }
                Kind::Broken if self.calls == fault.at => Verdict::Fails(libc::EIO),
                Kind::Short if self.calls == fault.at && writes => Verdict::Half,
                Kind::Full | Kind::Short if self.calls >= fault.at && writes => {
                    Verdict::Fails(libc::ENOSPC)
                }
                _ => Verdict::Works,
            }
        }

        /// Counts a call that reads. Returns true if it must fail.
        fn fails_to_read(&mut self, file: c_int) -> bool {
            let Some(fault) = self.fault.filter(|fault| fault.kind == Kind::Unreadable) else {
                return false;
            };
            let number = inode_of(file).and_then(|inode| self.numbers.get(&inode));
            let counts = number.is_some_and(|number| *number > 1);
            self.calls += u64::from(counts);
            counts && self.calls == fault.at
        }

        /// Records the renames in a directory that no recorded call made, by comparing its entries.
        fn find_renames(&mut self, directory: c_int) {
            let shown = format!("/proc/self/fd/{directory}\0");
            let Some(above) = self.inside(directory, c"".as_ptr()) else { return };
            // SAFETY: opens a directory by a C string; null if it is none.
            let stream = unsafe { libc::opendir(shown.as_ptr().cast()) };
            if stream.is_null() {
                return;
            }
            // SAFETY: the stream is open, and an entry is valid until the next call.
            while let Some(entry) = unsafe { libc::readdir64(stream).as_ref() } {
                // SAFETY: the name in an entry is a C string.
                let name = unsafe { CStr::from_ptr(entry.d_name.as_ptr()) }.to_bytes();
                let path = [&above[..], name].concat();
                if !self.numbers.contains_key(&entry.d_ino)
                    || self.names.get(&path) == Some(&entry.d_ino)
                {
                    continue;
                }
                let mut before = self.names.iter().filter(|(_, inode)| **inode == entry.d_ino);
                if let Some(before) = before.next().map(|(path, _)| path.clone()) {
                    self.note(RENAME, &[], &[&before, &path]);
                    self.names.remove(&before);
                    self.names.insert(path, entry.d_ino);
                }
            }
            // SAFETY: closes the stream that was opened above.
            unsafe { libc::closedir(stream) };
        }

        /// Updates the recorded names of files after a rename.
        fn rename(&mut self, tag: u8, paths: &[Vec<u8>]) {
            match (tag, paths) {
                (RENAME, [from, to]) => {
                    let below: Vec<Vec<u8>> =
                        self.names.keys().filter(|path| path.starts_with(from)).cloned().collect();
                    for path in below {
                        let moved = [&to[..], &path[from.len()..]].concat();
                        if let Some(inode) = self.names.remove(&path) {
                            self.names.insert(moved, inode);
                        }
                    }
                }
                (LINK, [from, to]) => {
                    if let Some(inode) = self.names.get(from).copied() {
                        self.names.insert(to.clone(), inode);
                    }
                }
                (REMOVE, [path]) => {
                    self.names.remove(path);
                }
                _ => {}
            }
        }

        fn note(&self, tag: u8, numbers: &[u64], texts: &[&[u8]]) {
            let mut event = vec![tag];
            numbers.iter().for_each(|number| event.extend_from_slice(&number.to_le_bytes()));
            for text in texts {
                event.extend_from_slice(&(text.len() as u64).to_le_bytes());
                event.extend_from_slice(text);
            }
            let mut rest = &event[..];
            while !rest.is_empty() {
                // SAFETY: writes from a buffer of this length.
                let written =
                    unsafe { libc::syscall(libc::SYS_write, self.log, rest.as_ptr(), rest.len()) };
                let Ok(written) = usize::try_from(written) else { std::process::abort() };
                rest = &rest[written..];
            }
            self.events.set(self.events.get() + 1);
            if self
                .fault
                .is_some_and(|fault| fault.kind == Kind::Killed && fault.at == self.events.get())
            {
                // SAFETY: ends the process at once, as a kill does.
                unsafe { libc::_exit(9) };
            }
        }
    }

    fn open_file(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        let mut recorder = recorder();
        let known = recorder.as_ref().is_some_and(|_| inode_at(at, path).is_some());
        // SAFETY: the caller's own arguments.
        let file = unsafe { libc::syscall(libc::SYS_openat, at, path, flags, mode) } as c_int;
        if let Some(recorder) = &mut *recorder
            && file >= 0
            && let (Some(name), Some(inode)) = (recorder.inside(at, path), inode_of(file))
        {
            if !known && flags & libc::O_CREAT != 0 {
                let number = recorder.number(inode);
                recorder.note(CREATE, &[number], &[&name]);
                recorder.names.insert(name, inode);
            } else if flags & libc::O_TRUNC != 0
                && let Some(number) = recorder.numbers.get(&inode)
            {
                recorder.note(TRUNCATE, &[*number, 0], &[]);
            }
        }
        file
    }

    /// Runs a call that writes, and records the bytes. `at` is the offset in the file; `None` for
    /// the file's current position.
    fn writing(
        file: c_int,
        at: Option<off_t>,
        parts: &[&[u8]],
        call: impl FnOnce() -> c_long,
    ) -> ssize_t {
        let mut recorder = recorder();
        let written = parts.iter().map(|part| part.len()).sum();
        let verdict = recorder.as_mut().map_or(Verdict::Works, |found| found.judge(file, written));
        let written = match (verdict, parts.first()) {
            (Verdict::Fails(error), _) => return failed(error),
            (Verdict::Half, Some(first)) => {
                let half = first.len().div_ceil(2);
                // SAFETY: writes at most as many bytes as the buffer has.
                unsafe {
                    match at {
                        Some(at) => {
                            libc::syscall(libc::SYS_pwrite64, file, first.as_ptr(), half, at)
                        }
                        None => libc::syscall(libc::SYS_write, file, first.as_ptr(), half),
                    }
                }
            }
            _ => call(),
        } as ssize_t;
        let Some(recorder) = &*recorder else { return written };
        if let (Ok(mut left), Some(inode)) = (usize::try_from(written), inode_of(file))
            && let Some(number) = recorder.numbers.get(&inode)
        {
            let end = match at {
                Some(at) => at + written as off_t,
                // SAFETY: reads the position of a descriptor.
                None => unsafe { libc::syscall(libc::SYS_lseek, file, 0, libc::SEEK_CUR) as off_t },
            };
            let mut bytes = Vec::with_capacity(left);
            for part in parts {
                let taken = left.min(part.len());
                bytes.extend_from_slice(&part[..taken]);
                left -= taken;
            }
            let start = end as u64 - bytes.len() as u64;
            recorder.note(WRITE, &[*number, start], &[&bytes]);
        }
        written
    }

    /// Runs a call on an open file, and records it if it succeeds.
    fn on_file(file: c_int, tag: u8, more: &[u64], call: impl FnOnce() -> c_long) -> c_int {
        let mut recorder = recorder();
        if let Some(recorder) = &mut *recorder {
            if let Verdict::Fails(error) = recorder.judge(file, 0) {
                return failed(error) as c_int;
            }
            if tag == SYNC {
                recorder.find_renames(file);
            }
        }
        let done = call() as c_int;
        if let Some(recorder) = &*recorder
            && done == 0
            && let Some(number) = inode_of(file).and_then(|inode| recorder.numbers.get(&inode))
        {
            recorder.note(tag, &[&[*number], more].concat(), &[]);
        }
        done
    }

    /// Runs a call on names, and records it if it succeeds.
    fn on_names(tag: u8, names: &[(c_int, *const c_char)], call: impl FnOnce() -> c_long) -> c_int {
        let mut recorder = recorder();
        let done = call() as c_int;
        if let Some(recorder) = &mut *recorder
            && done == 0
        {
            let inside = names.iter().map(|(at, path)| recorder.inside(*at, *path));
            if let Some(inside) = inside.collect::<Option<Vec<_>>>() {
                let made = (tag == MAKE_DIRECTORY)
                    .then(|| inode_at(names[0].0, names[0].1))
                    .flatten()
                    .map(|inode| recorder.number(inode));
                let texts: Vec<&[u8]> = inside.iter().map(|name| &name[..]).collect();
                recorder.note(tag, made.as_slice(), &texts);
                recorder.rename(tag, &inside);
            }
        }
        done
    }

    /// Returns the caller's buffer as a slice.
    ///
    /// # Safety
    /// The buffer must have `length` bytes.
    unsafe fn bytes<'b>(buffer: *const c_void, length: size_t) -> &'b [u8] {
        if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(buffer.cast(), length) } }
    }

    /// Returns the caller's buffers as slices.
    ///
    /// # Safety
    /// The vector must have `count` elements, each with a buffer of its length.
    unsafe fn buffers<'b>(vector: *const iovec, count: c_int) -> Vec<&'b [u8]> {
        let parts = unsafe { std::slice::from_raw_parts(vector, count as usize) };
        parts.iter().map(|part| unsafe { bytes(part.iov_base, part.iov_len) }).collect()
    }

    const HERE: c_int = libc::AT_FDCWD;

    // SAFETY of the functions below: the names and types are those of the C library, and the
    // arguments are passed on unchanged.

    #[unsafe(no_mangle)]
    extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_file(HERE, path, flags, mode)
    }

    #[unsafe(no_mangle)]
    extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_file(HERE, path, flags, mode)
    }

    #[unsafe(no_mangle)]
    extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_file(at, path, flags, mode)
    }

    #[unsafe(no_mangle)]
    extern "C" fn openat64(at: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        open_file(at, path, flags, mode)
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn write(file: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
        writing(file, None, &[unsafe { bytes(buffer, length) }], || unsafe {
            libc::syscall(libc::SYS_write, file, buffer, length)
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn pwrite64(
        file: c_int,
        buffer: *const c_void,
        length: size_t,
        at: off_t,
    ) -> ssize_t {
        writing(file, Some(at), &[unsafe { bytes(buffer, length) }], || unsafe {
            libc::syscall(libc::SYS_pwrite64, file, buffer, length, at)
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn writev(file: c_int, vector: *const iovec, count: c_int) -> ssize_t {
        writing(file, None, &unsafe { buffers(vector, count) }, || unsafe {
            libc::syscall(libc::SYS_writev, file, vector, count)
        })
    }

    /// Runs a call that reads, unless the fault hits it.
    fn reading(file: c_int, call: impl FnOnce() -> c_long) -> ssize_t {
        let fails = recorder().as_mut().is_some_and(|found| found.fails_to_read(file));
        if fails { failed(libc::EIO) } else { call() as ssize_t }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn read(file: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
        reading(file, || unsafe { libc::syscall(libc::SYS_read, file, buffer, length) })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn pread64(
        file: c_int,
        buffer: *mut c_void,
        length: size_t,
        at: off_t,
    ) -> ssize_t {
        reading(file, || unsafe { libc::syscall(libc::SYS_pread64, file, buffer, length, at) })
    }

    /// Copies by the kernel are refused, so that the caller reads and writes the bytes itself.
    #[unsafe(no_mangle)]
    extern "C" fn copy_file_range(
        _: c_int,
        _: *mut off_t,
        _: c_int,
        _: *mut off_t,
        _: size_t,
        _: u32,
    ) -> ssize_t {
        failed(libc::ENOSYS)
    }

    #[unsafe(no_mangle)]
    extern "C" fn sendfile64(_: c_int, _: c_int, _: *mut off_t, _: size_t) -> ssize_t {
        failed(libc::ENOSYS)
    }

    fn failed(error: c_int) -> ssize_t {
        // SAFETY: the location of this thread's error number.
        unsafe { *libc::__errno_location() = error };
        -1
    }

    #[unsafe(no_mangle)]
    extern "C" fn ftruncate64(file: c_int, length: off_t) -> c_int {
        on_file(file, TRUNCATE, &[length as u64], || unsafe {
            libc::syscall(libc::SYS_ftruncate, file, length)
        })
    }

    #[unsafe(no_mangle)]
    extern "C" fn fsync(file: c_int) -> c_int {
        on_file(file, SYNC, &[], || unsafe { libc::syscall(libc::SYS_fsync, file) })
    }

    #[unsafe(no_mangle)]
    extern "C" fn fdatasync(file: c_int) -> c_int {
        on_file(file, SYNC, &[], || unsafe { libc::syscall(libc::SYS_fdatasync, file) })
    }

    #[unsafe(no_mangle)]
    extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
        on_names(RENAME, &[(HERE, from), (HERE, to)], || unsafe {
            libc::syscall(libc::SYS_renameat2, HERE, from, HERE, to, 0)
        })
    }

    #[unsafe(no_mangle)]
    extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
        linkat(HERE, from, HERE, to, 0)
    }

    #[unsafe(no_mangle)]
    extern "C" fn linkat(
        from_at: c_int,
        from: *const c_char,
        to_at: c_int,
        to: *const c_char,
        flags: c_int,
    ) -> c_int {
        on_names(LINK, &[(from_at, from), (to_at, to)], || unsafe {
            libc::syscall(libc::SYS_linkat, from_at, from, to_at, to, flags)
        })
    }

    #[unsafe(no_mangle)]
    extern "C" fn unlink(path: *const c_char) -> c_int {
        unlinkat(HERE, path, 0)
    }

    #[unsafe(no_mangle)]
    extern "C" fn rmdir(path: *const c_char) -> c_int {
        unlinkat(HERE, path, libc::AT_REMOVEDIR)
    }

    #[unsafe(no_mangle)]
    extern "C" fn unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int {
        on_names(REMOVE, &[(at, path)], || unsafe {
            libc::syscall(libc::SYS_unlinkat, at, path, flags)
        })
    }

    #[unsafe(no_mangle)]
    extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
        on_names(MAKE_DIRECTORY, &[(HERE, path)], || unsafe {
            libc::syscall(libc::SYS_mkdirat, HERE, path, mode)
        })
    }
}
