// Which tab holds the stream of all: one leader at a time, chosen by a lock of the browser where the page is secure, and by
// a note in the local storage elsewhere.

const LOCK = 'fairlead-live';
const NOTE = 'fairlead-leader';
const STALE_MS = 4000;
const LOOK_MS = 1000;
const SETTLE_MS = 150;

export const tabId = Math.random().toString(36).slice(2, 10);

/** Takes part in the choice. `onLead` is called when this tab becomes the leader, `onLose` when another one takes over. */
export function elect({ onLead, onLose }) {
  return navigator.locks ? byLock(onLead, onLose) : byNote(onLead, onLose);
}

function byLock(onLead, onLose) {
  const join = options =>
    navigator.locks
      .request(LOCK, options, () => {
        onLead();
        return new Promise(() => {});
      })
      .catch(() => {
        onLose();
        join({});
      });
  join({});
  return { beat() {}, seize: () => join({ steal: true }), leave() {} };
}

function readNote() {
  try {
    return JSON.parse(localStorage.getItem(NOTE)) ?? {};
  } catch {
    return {};
  }
}

function byNote(onLead, onLose) {
  let leads = false;
  const write = () => localStorage.setItem(NOTE, JSON.stringify({ id: tabId, at: Date.now() }));
  const fresh = note => Date.now() - note.at < STALE_MS;
  const take = () => {
    write();
    setTimeout(() => {
      if (leads || readNote().id !== tabId) return;
      leads = true;
      onLead();
    }, SETTLE_MS);
  };
  const look = () => {
    const note = readNote();
    if (leads && note.id !== tabId && fresh(note)) {
      leads = false;
      onLose();
    } else if (leads) write();
    else if (!fresh(note)) take();
  };
  const leave = () => {
    if (leads && readNote().id === tabId) localStorage.removeItem(NOTE);
  };
  addEventListener('pagehide', leave);
  addEventListener('storage', event => {
    if (event.key === NOTE) look();
  });
  setInterval(look, LOOK_MS);
  look();
  return { beat: look, seize: take, leave };
}
