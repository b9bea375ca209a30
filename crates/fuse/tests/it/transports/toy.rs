//! A small file system in memory.

use holdfast_fuse::{
    Answer, Cancel, Context, Opened, Operations, Session, TransportChoice,
    wire::{
        CreateRequest, DirSink, LockRequest, LockType, OpenReply, OpenRequest, ReadRequest,
        Request, SetAttrRequest, WriteRequest,
    },
};
use holdfast_types::{Attr, Errno, FileType, Ino, Result, SetTime, StatFs, Time};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// One directory, files with content, one lock per file. Some names are special. A lookup of
/// `panic` panics. Reads of `held*` and `slow*` wait for [`Toy::let_go`]; `slow*` announces that it
/// takes long. Creating `late*` takes a while.
pub(crate) struct Toy {
    state: Mutex<State>,
    changed: Condvar,
    making: AtomicUsize,
    /// Reads that wait, and whether they need not any more.
    held: Mutex<(usize, bool)>,
    let_go: Condvar,
    /// Does it wait with reads when it is asked for its space? And how often it was.
    holds_space: AtomicBool,
    asked_for_space: AtomicUsize,
    /// What happens when the next lookup is answered, and the kernel does not have the answer yet.
    meanwhile: Mutex<Option<Act>>,
}

type Act = Box<dyn FnOnce(&Toy) + Send>;

/// How long creating a file `late*` takes.
const LATE: Duration = Duration::from_millis(300);

struct State {
    names: BTreeMap<Vec<u8>, Ino>,
    files: HashMap<Ino, File>,
    next: u64,
}

struct File {
    attr: Attr,
    data: Vec<u8>,
    references: i64,
    lock_owner: Option<u64>,
    held: bool,
    slow: bool,
}

fn attr(ino: Ino, kind: FileType, perm: u16) -> Attr {
    let time = Time::new(1_000_000_000, 5);
    Attr {
        ino,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
    }
}

impl Toy {
    pub(crate) fn new() -> Arc<Self> {
        let root = attr(Ino::ROOT, FileType::Directory, 0o755);
        let root = File {
            attr: root,
            data: vec![],
            references: 1,
            lock_owner: None,
            held: false,
            slow: false,
        };
        let state = State {
            names: BTreeMap::new(),
            files: HashMap::from([(Ino::ROOT, root)]),
            next: 2,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            making: AtomicUsize::new(0),
            held: Mutex::default(),
            let_go: Condvar::new(),
            holds_space: AtomicBool::new(false),
            asked_for_space: AtomicUsize::new(0),
            meanwhile: Mutex::default(),
        })
    }

    /// Reads that wait for [`Toy::let_go`].
    pub(crate) fn held(&self) -> usize {
        self.held.lock().unwrap().0
    }

    /// Lets all reads go on.
    pub(crate) fn let_go(&self) {
        self.held.lock().unwrap().1 = true;
        self.let_go.notify_all();
    }

    /// From now on, does not answer when asked for its space until [`Toy::let_go`].
    pub(crate) fn hold_space(&self) {
        self.holds_space.store(true, Ordering::SeqCst);
    }

    /// How often it was asked for its space.
    pub(crate) fn asked_for_space(&self) -> usize {
        self.asked_for_space.load(Ordering::SeqCst)
    }

    fn hold(&self) {
        let mut held = self.held.lock().unwrap();
        held.0 += 1;
        while !held.1 {
            held = self.let_go.wait(held).unwrap();
        }
        held.0 -= 1;
    }

    /// References the kernel holds, the root's left out.
    pub(crate) fn references(&self) -> i64 {
        let state = self.state.lock().unwrap();
        let sum: i64 = state.files.values().map(|file| file.references).sum();
        sum - 1
    }

    /// Files that are being made.
    pub(crate) fn making(&self) -> usize {
        self.making.load(Ordering::SeqCst)
    }

    /// Changes a file behind the kernel's back.
    pub(crate) fn replace(&self, name: &str, data: &[u8]) -> Ino {
        let mut state = self.state.lock().unwrap();
        let ino = state.names[name.as_bytes()];
        let file = state.files.get_mut(&ino).unwrap();
        file.data = data.to_vec();
        file.attr.size = data.len() as u64;
        ino
    }

    /// Does this when the next lookup is answered, before the kernel has the answer.
    pub(crate) fn meanwhile(&self, act: impl FnOnce(&Self) + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(act));
    }

    /// Adds a name behind the kernel's back.
    pub(crate) fn add(&self, name: &str) {
        let mut state = self.state.lock().unwrap();
        state.make(
            name.as_bytes(),
            0o644,
            Attr {
                uid: 1,
                ..attr(Ino(0), FileType::Regular, 0)
            },
        );
    }
}

impl State {
    fn file(&mut self, ino: Ino) -> Result<&mut File> {
        self.files.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    fn make(&mut self, name: &[u8], mode: u32, like: Attr) -> Attr {
        let ino = Ino(self.next);
        self.next += 1;
        let kind = FileType::from_mode(mode).unwrap_or(FileType::Regular);
        let attr = Attr {
            uid: like.uid,
            gid: like.gid,
            ..attr(ino, kind, mode as u16 & 0o7777)
        };
        let file = File {
            attr,
            data: vec![],
            references: 0,
            lock_owner: None,
            held: name.starts_with(b"held") || name.starts_with(b"slow"),
            slow: name.starts_with(b"slow"),
        };
        self.files.insert(ino, file);
        self.names.insert(name.to_vec(), ino);
        attr
    }

    fn list(&self, after: u64) -> impl Iterator<Item = (u64, &[u8], &Attr)> {
        let dots = [(&b"."[..], Ino::ROOT), (&b".."[..], Ino::ROOT)];
        let names = self.names.iter().map(|(name, &ino)| (&name[..], ino));
        dots.into_iter()
            .chain(names)
            .zip(1..)
            .skip(after as usize)
            .map(|((name, ino), cookie)| (cookie, name, &self.files[&ino].attr))
    }
}

impl Toy {
    fn lookup(&self, name: &[u8]) -> Result<Attr> {
        assert!(name != b"panic", "as the test wants");
        let mut state = self.state.lock().unwrap();
        let ino = *state.names.get(name).ok_or(Errno::ENOENT)?;
        let file = state.file(ino)?;
        file.references += 1;
        let attr = file.attr;
        drop(state);
        let act = self.meanwhile.lock().unwrap().take();
        if let Some(act) = act {
            act(self);
        }
        Ok(attr)
    }

    fn getattr(&self, ino: Ino) -> Result<Attr> {
        self.state.lock().unwrap().file(ino).map(|file| file.attr)
    }

    fn setattr(&self, ino: Ino, request: &SetAttrRequest) -> Result<Attr> {
        let mut state = self.state.lock().unwrap();
        let file = state.file(ino)?;
        if let Some(size) = request.set.size {
            file.data.resize(size as usize, 0);
            file.attr.size = size;
        }
        file.attr.perm = request.set.perm.unwrap_or(file.attr.perm);
        if let Some(SetTime::At(time)) = request.set.mtime {
            file.attr.mtime = time;
        }
        Ok(file.attr)
    }

    fn create(&self, cx: &Context<'_>, request: &CreateRequest<'_>) -> Result<Answer> {
        if request.name.starts_with(b"late") {
            self.making.fetch_add(1, Ordering::SeqCst);
            thread::sleep(LATE);
            self.making.fetch_sub(1, Ordering::SeqCst);
        }
        let mut state = self.state.lock().unwrap();
        let like = Attr {
            uid: cx.uid,
            gid: cx.gid,
            ..attr(Ino(0), FileType::Regular, 0)
        };
        let made = state.make(request.name, request.mode & !u32::from(cx.umask), like);
        state.file(made.ino)?.references += 1;
        let opened = Opened {
            fh: made.ino.0,
            flags: OpenReply::KEEP_CACHE,
            backing: None,
        };
        Ok(Answer::Created(made, opened))
    }

    fn open(ino: Ino, request: OpenRequest) -> Opened {
        let direct = request.flags & libc::O_DIRECT != 0;
        let flags = if direct {
            OpenReply::DIRECT_IO
        } else {
            OpenReply::KEEP_CACHE
        };
        Opened {
            fh: ino.0,
            flags,
            backing: None,
        }
    }

    fn write(&self, ino: Ino, request: &WriteRequest<'_>) -> Result<usize> {
        let mut state = self.state.lock().unwrap();
        let file = state.file(ino)?;
        let end = request.offset as usize + request.data.len();
        if file.data.len() < end {
            file.data.resize(end, 0);
        }
        file.data[request.offset as usize..end].copy_from_slice(request.data);
        file.attr.size = file.data.len() as u64;
        Ok(request.data.len())
    }

    fn flush(&self, ino: Ino, lock_owner: u64) -> Result<Answer> {
        let mut state = self.state.lock().unwrap();
        let file = state.file(ino)?;
        if file.lock_owner == Some(lock_owner) {
            file.lock_owner = None;
            self.changed.notify_all();
        }
        Ok(Answer::Done)
    }

    fn statfs(&self) -> StatFs {
        self.asked_for_space.fetch_add(1, Ordering::SeqCst);
        if self.holds_space.load(Ordering::SeqCst) {
            self.hold();
        }
        StatFs {
            block_size: 4096,
            blocks: 1000,
            blocks_free: 500,
            blocks_available: 400,
            files: 100,
            files_free: 50,
            name_max: 255,
        }
    }
}

impl Operations for Toy {
    fn answer(&self, cx: &Context<'_>, ino: Ino, request: Request<'_>) -> Result<Answer> {
        match request {
            Request::Lookup { name } => self.lookup(name).map(Answer::Entry),
            Request::GetAttr => self.getattr(ino).map(Answer::Attr),
            Request::StatX => self.getattr(ino).map(Answer::StatX),
            Request::SetAttr(set) => self.setattr(ino, &set).map(Answer::Attr),
            Request::Create(create) => self.create(cx, &create),
            Request::Open(open) => Ok(Answer::Opened(Self::open(ino, open))),
            Request::OpenDir(_) => Ok(Answer::Opened(Opened::default())),
            Request::Release(_) => Ok(Answer::Done),
            Request::Write(write) => self.write(ino, &write).map(Answer::Written),
            Request::Flush { lock_owner, .. } => self.flush(ino, lock_owner),
            Request::StatFs => Ok(Answer::StatFs(self.statfs())),
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Refuses nothing: that is the session's part.
    fn revoke(&self, _: Option<&Context<'_>>) -> Result<()> {
        Ok(())
    }

    fn known(&self, visit: &mut dyn FnMut(Ino)) {
        let inos: Vec<_> = self.state.lock().unwrap().files.keys().copied().collect();
        inos.into_iter().for_each(visit);
    }

    fn is_known(&self, ino: Ino) -> bool {
        let mut state = self.state.lock().unwrap();
        state.file(ino).is_ok_and(|file| file.references > 0)
    }

    fn takes_long(&self, ino: Ino, request: &Request<'_>) -> bool {
        if let Request::Create(create) = request {
            return create.name.starts_with(b"late");
        }
        matches!(request, Request::Read(_))
            && self
                .state
                .lock()
                .unwrap()
                .files
                .get(&ino)
                .is_some_and(|file| file.slow)
    }

    fn forget(&self, ino: Ino, count: u64) {
        if let Ok(file) = self.state.lock().unwrap().file(ino) {
            file.references -= count as i64;
        }
    }

    fn read(&self, ino: Ino, request: &ReadRequest, out: &mut [u8]) -> Result<usize> {
        let held = self.state.lock().unwrap().file(ino)?.held;
        if held {
            self.hold();
        }
        let mut state = self.state.lock().unwrap();
        let data = &state.file(ino)?.data;
        let rest = data.get(request.offset as usize..).unwrap_or(&[]);
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn readdir(
        &self,
        _: &Context<'_>,
        _: Ino,
        request: &ReadRequest,
        sink: &mut DirSink<'_>,
    ) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let mut taken = vec![];
        for (cookie, name, attr) in state.list(request.offset) {
            if !sink.push_plus(name, attr, cookie, None) {
                break;
            }
            if sink.takes_attributes() && !name.starts_with(b".") {
                taken.push(attr.ino);
            }
        }
        for ino in taken {
            state.file(ino)?.references += 1;
        }
        Ok(())
    }

    fn setlk(&self, ino: Ino, lock: &LockRequest, wait: Option<&Cancel>) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        loop {
            let file = state.file(ino)?;
            let free = file.lock_owner.is_none_or(|owner| owner == lock.owner);
            if lock.kind == LockType::Unlock {
                if free {
                    file.lock_owner = None;
                    self.changed.notify_all();
                }
                return Ok(());
            }
            if free {
                file.lock_owner = Some(lock.owner);
                return Ok(());
            }
            let cancel = wait.ok_or(Errno::EAGAIN)?;
            if cancel.is_cancelled() {
                return Err(Errno::EINTR);
            }
            state = self
                .changed
                .wait_timeout(state, Duration::from_millis(5))
                .unwrap()
                .0;
        }
    }
}

/// Runs `test` on a mount of a new [`Toy`] over each transport that this machine has, and says
/// which were skipped.
pub(crate) fn on_each_transport(test: impl Fn(&Arc<Toy>, &Session, &Path)) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = crate::support::config(transport) else {
            continue;
        };
        let toy = Toy::new();
        let dir = tempfile::tempdir().unwrap();
        let session = Session::mount(toy.clone(), dir.path(), &config).unwrap();
        test(&toy, &session, dir.path());
        crate::support::unmount(&session);
        assert!(session.is_over());
    }
}
