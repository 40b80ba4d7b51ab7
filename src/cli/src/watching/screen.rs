//! The terminal of a live table: keys without Enter, a page of its own. It is given back when the table ends, whatever
//! ends it: a key, a signal, a stop, a panic. Knows nothing of jobs.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic,
    sync::Once,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    process::{Signal, getpgrp, getpid, kill_process},
    termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
        tcsetattr,
    },
};

use crate::clock;

/// How often keys are read: soon enough for a person, seldom enough for a machine.
const KEYS_EVERY: Duration = Duration::from_millis(50);
/// A second page, without a cursor and without lines that go on below.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The first page again, as it was.
const LEAVE: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Columns and rows of a terminal that does not know.
const SIZE: (usize, usize) = (80, 24);

/// What the terminal was before, while it is ours.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
/// The hook of panics is set once.
static HOOKED: Once = Once::new();

struct Before {
    modes: Termios,
    input: OwnedFd,
    output: OwnedFd,
}

/// A terminal for a live table.
pub(crate) struct Screen {
    input: OwnedFd,
    output: OwnedFd,
}

impl Screen {
    /// The terminal at these ends. It is taken by [`Screen::enter`] only.
    pub(crate) fn new(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<Self> {
        HOOKED.call_once(|| {
            let hook = panic::take_hook();
            // Else the message would go with the page.
            panic::set_hook(Box::new(move |info| {
                give_back();
                hook(info);
            }));
        });
        Ok(Self {
            input: input.try_clone_to_owned()?,
            output: output.try_clone_to_owned()?,
        })
    }

    /// Takes the terminal. `false`: it belongs to another command now, as after `bg`.
    pub(crate) fn enter(&self) -> io::Result<bool> {
        let input = &self.input;
        // Where the terminal controls no session, nobody else has it.
        if tcgetpgrp(input).is_ok_and(|owner| owner != getpgrp()) {
            return Ok(false);
        }
        let mut before = BEFORE.lock();
        if before.is_some() {
            return Ok(true);
        }
        let modes = tcgetattr(input)?;
        let mut ours = modes.clone();
        // Ctrl-C and Ctrl-Z stay signals.
        ours.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // A read takes what there is, and never waits.
        ours.special_codes[SpecialCodeIndex::VMIN] = 0;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        *before = Some(Before {
            modes,
            input: input.try_clone()?,
            output: self.output.try_clone()?,
        });
        drop(before);
        tcsetattr(input, OptionalActions::Now, &ours)?;
        write_all(&self.output, ENTER);
        Ok(true)
    }

    /// Whether the terminal is taken.
    pub(crate) fn is_taken() -> bool {
        BEFORE.lock().is_some()
    }

    /// Gives the terminal back and stops this process, as Ctrl-Z asks. Returns when it goes on.
    pub(crate) fn stop() {
        give_back();
        // If it cannot be stopped, it goes on.
        let _ = kill_process(getpid(), Signal::STOP);
    }

    /// The next key, while the terminal is taken. May be dropped and called again.
    pub(crate) async fn key(&self) -> io::Result<u8> {
        loop {
            let mut key = [0_u8; 1];
            // Keys of a terminal that is not ours are another command's.
            let is_ours = Self::is_taken();
            match is_ours.then(|| rustix::io::read(&self.input, &mut key)) {
                Some(Ok(1..)) => return Ok(key[0]),
                None | Some(Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)) => {
                    clock::pause(KEYS_EVERY).await;
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Its columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        let known = |number: u16, default| match number {
            0 => default,
            number => usize::from(number),
        };
        tcgetwinsize(&self.output).map_or(SIZE, |size| {
            (known(size.ws_col, SIZE.0), known(size.ws_row, SIZE.1))
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The terminal as it was before; nothing if it is not ours.
fn give_back() {
    let Some(before) = BEFORE.lock().take() else {
        return;
    };
    write_all(&before.output, LEAVE);
    // A terminal that is gone needs nothing.
    let _ = tcsetattr(&before.input, OptionalActions::Now, &before.modes);
}

fn write_all(output: impl AsFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(output.as_fd(), bytes) {
            Ok(written @ 1..) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    fn terminal() -> (OwnedFd, OwnedFd) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = name.to_string_lossy().into_owned();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        (master, slave.into())
    }

    fn modes(terminal: &OwnedFd) -> (LocalModes, u8) {
        let modes = tcgetattr(terminal).unwrap();
        let least = modes.special_codes[SpecialCodeIndex::VMIN];
        (modes.local_modes, least)
    }

    #[test]
    fn a_panic_gives_the_terminal_back() {
        let (_master, slave) = terminal();
        let before = modes(&slave);
        let screen = Screen::new(slave.as_fd(), slave.as_fd()).unwrap();
        assert!(screen.enter().unwrap() && Screen::is_taken());
        let ours = modes(&slave);
        assert!(!ours.0.intersects(LocalModes::ICANON | LocalModes::ECHO));
        assert!(ours.0.contains(LocalModes::ISIG));
        let ended = panic::catch_unwind(|| panic!("as a mistake in a page would"));
        assert!(ended.is_err() && !Screen::is_taken());
        assert_eq!(modes(&slave), before);
        // It can be taken again, and a drop is an end, too.
        assert!(screen.enter().unwrap());
        assert_eq!(modes(&slave), ours);
        drop(screen);
        assert_eq!(modes(&slave), before);
    }
}
