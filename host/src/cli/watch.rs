//! A live view on the terminal, which is left as it was found however this ends.

use std::io::{self, IsTerminal, Read as _, Stdout};
use std::mem::ManuallyDrop;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::report::BOUNDS_OF_WATCH;
use crate::service::Service;
use crate::store::Version;
use crate::watch::{Key, Look, Outcome, Shown, View, draw};

use super::answer::{Answer, columns};
use super::{Refused, documents};

/// How often the database is asked whether anything changed.
const EVERY: Duration = Duration::from_secs(1);

/// How long is waited for a key before the clock is looked at, in nanoseconds.
const GLANCE_NS: i64 = 100_000_000;

/// The most loops of a list.
const LOOPS: u32 = 500;

/// How many columns a printed frame has where no terminal says.
const WIDE: usize = 100;

/// Shows a loop, or the loops of the project, until it is told to end; with `once`
/// prints one frame.
pub fn run(service: &Service, of: Option<&str>, once: bool) -> Result<Answer, Refused> {
    let loop_id = of.map(|of| documents::loop_id(service, of)).transpose()?;
    let mut feed = Feed { service, loop_id, seen: None, trouble: None };
    let shown = feed.read()?;
    if once {
        return Ok(frame(&shown, of));
    }
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Refused::misuse(
            "watch needs a terminal; `watch --once` prints one frame anywhere, and `report --out FILE` writes a page",
        ));
    }
    live(&mut feed, shown).map_err(|error| Refused::from(format!("the terminal failed: {error}")))?;
    Ok(Answer::text(json!({ "loop": of }), String::new()))
}

/// One frame as text, as high as it takes.
fn frame(shown: &Shown, of: Option<&str>) -> Answer {
    let width = columns().unwrap_or(WIDE).clamp(20, 400);
    let area = |height: usize| Rect::new(0, 0, width as u16, height.clamp(1, 2_000) as u16);
    let draw_in = |area: Rect, buffer: &mut Buffer| {
        draw(shown, &View::default(), None, Look { colour: false }, area, buffer)
    };
    let (lines, _) = draw_in(area(1), &mut Buffer::empty(area(1)));
    let area = area(lines + 5);
    let mut buffer = Buffer::empty(area);
    draw_in(area, &mut buffer);
    let mut text = String::new();
    // The last row tells keys, which nobody can press here.
    for row in buffer.content.chunks(width).take(usize::from(area.height) - 1) {
        let mut line = String::new();
        let mut covered = 0;
        for cell in row {
            if covered == 0 {
                line.push_str(cell.symbol());
                covered = crate::plain::width(cell.symbol()).max(1);
            }
            covered -= 1;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let text = format!("{}\n", text.trim_end());
    Answer::text(json!({ "loop": of, "frame": text }), text)
}

/// Reads what is shown, when it changed.
struct Feed<'a> {
    service: &'a Service,
    loop_id: Option<String>,
    seen: Option<Version>,
    trouble: Option<String>,
}

impl Feed<'_> {
    fn read(&self) -> Result<Shown, String> {
        let told = |refusal: crate::service::Refusal| refusal.to_string();
        match &self.loop_id {
            None => Ok(Shown::Overview(self.service.overview(LOOPS).map_err(told)?)),
            Some(id) => Ok(match self.service.loop_records(id, &BOUNDS_OF_WATCH).map_err(told)? {
                Some(records) => Shown::Loop(Box::new(records)),
                None => Shown::Gone(format!("Loop {id} is gone")),
            }),
        }
    }

    /// Reads again where anything in the database changed; time passes in any case.
    fn refresh(&mut self, shown: &mut Shown) {
        let fresh = (|| {
            // Taken before the reading: what changes meanwhile is read next time.
            let version = self.service.database_version().map_err(|refusal| refusal.to_string())?;
            if self.seen != Some(version) {
                *shown = self.read()?;
                self.seen = Some(version);
            }
            let now = self.service.now().map_err(|refusal| refusal.to_string())?;
            match shown {
                Shown::Loop(records) => records.at = now,
                Shown::Overview(overview) => overview.at = now,
                Shown::Gone(_) => {}
            }
            Ok(())
        })();
        self.trouble = fresh.err();
    }

    fn show(&mut self, loop_id: Option<String>, shown: &mut Shown) {
        self.loop_id = loop_id;
        self.seen = None;
        self.refresh(shown);
    }
}

/// The terminal while it is ours.
struct Screen {
    /// Never dropped: it would complain to a standard error that may be gone as well,
    /// and panic. What it would put right, [`give_back`] does.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        let told = std::panic::take_hook();
        // Else what a panic says is gone with the screen that it was said on.
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
        terminal::enable_raw_mode()?;
        let taken = execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| {
                let options = TerminalOptions { viewport: Viewport::Fullscreen };
                Terminal::with_options(CrosstermBackend::new(io::stdout()), options)
            })
            .map(|terminal| Screen { terminal: ManuallyDrop::new(terminal) });
        if taken.is_err() {
            give_back();
        }
        taken
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Leaves the terminal as it was. Where it is gone, there is nothing to leave.
fn give_back() {
    let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// The signals that end it.
const ENDS: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

fn live(feed: &mut Feed<'_>, mut shown: Shown) -> io::Result<()> {
    let drawing = Arc::new(Mutex::new(()));
    end_by_signal(Arc::clone(&drawing))?;
    let mut screen = Screen::take()?;
    turn(feed, &mut shown, &mut screen, &drawing)
}

/// Lets each of the signals put the terminal right and then end the process as it would
/// have without us.
///
/// On a thread of its own: whatever the other one waits for, a signal is not kept waiting.
fn end_by_signal(drawing: Arc<Mutex<()>>) -> io::Result<()> {
    let came = Arc::new(AtomicUsize::new(0));
    let (mut told, tell) = UnixStream::pair()?;
    for signal in ENDS {
        // The flag first, so that who is told finds it.
        signal_hook::flag::register_usize(signal, Arc::clone(&came), usize::try_from(signal).unwrap_or(0))?;
        signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?;
    }
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if told.read_exact(&mut [0]).is_err() {
            return;
        }
        // Not into the middle of a frame; but a terminal that takes no more is not waited for.
        let mut frame = drawing.try_lock();
        for _ in 0..20 {
            if frame.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            frame = drawing.try_lock();
        }
        give_back();
        let signal = i32::try_from(came.load(Ordering::SeqCst)).unwrap_or(SIGTERM);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    })?;
    Ok(())
}

fn turn(feed: &mut Feed<'_>, shown: &mut Shown, screen: &mut Screen, drawing: &Mutex<()>) -> io::Result<()> {
    let look = Look { colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let mut view = View { from_list: false, ..View::default() };
    let has_list = feed.loop_id.is_none();
    let mut asked: Option<Instant> = None;
    let mut stale = true;
    let mut extent = (0, 0);
    let mut queued = false;
    loop {
        if asked.is_none_or(|asked| asked.elapsed() >= EVERY) {
            feed.refresh(shown);
            asked = Some(Instant::now());
            stale = true;
        }
        if stale {
            let _frame = drawing.lock().unwrap_or_else(PoisonError::into_inner);
            screen.terminal.draw(|frame| {
                let area = frame.area();
                extent = draw(shown, &view, feed.trouble.as_deref(), look, area, frame.buffer_mut());
            })?;
            stale = false;
        }
        if !is_ready(queued)? {
            queued = false;
            continue;
        }
        (stale, queued) = (true, true);
        let Event::Key(pressed) = event::read()? else { continue };
        let Some(key) = key(pressed) else { continue };
        match view.key(key, shown, extent.0, extent.1) {
            Outcome::Stay => {}
            Outcome::Quit => return Ok(()),
            Outcome::Back => {
                let chosen = view.chosen;
                view = View { chosen, ..View::default() };
                feed.show(None, shown);
            }
            Outcome::Open(place) => {
                let Shown::Overview(overview) = &*shown else { continue };
                let Some(row) = overview.loops.get(place) else { continue };
                let found = feed.service.loop_at(&row.summary.project_root, &row.summary.slug);
                match found {
                    Ok(Some(id)) => {
                        view = View { chosen: place, from_list: has_list, ..View::default() };
                        feed.show(Some(id), shown);
                    }
                    Ok(None) => feed.show(None, shown),
                    Err(refusal) => feed.trouble = Some(refusal.to_string()),
                }
            }
        }
    }
}

/// Whether there is an event to read; waits a moment unless some may be `queued`.
///
/// Looks itself whether the terminal is still there: the library would read from one that
/// is gone for ever.
fn is_ready(queued: bool) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: if queued { 0 } else { GLANCE_NS } };
    match poll(&mut terminal, Some(&wait)) {
        // A signal, which may have brought another size.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "it is gone"));
    }
    // The library looks only when it is given time to.
    event::poll(Duration::from_millis(1))
}

/// What a key means here; `None` for nothing.
fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    Some(match pressed.code {
        KeyCode::Char('c' | 'd') if control => Key::Quit,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char('q' | 'Q') => Key::Quit,
        KeyCode::Esc => Key::Back,
        KeyCode::Enter => Key::Enter,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Key::Home,
        KeyCode::End | KeyCode::Char('G') => Key::End,
        KeyCode::Left | KeyCode::BackTab | KeyCode::Char('h') => Key::Left,
        KeyCode::Right | KeyCode::Tab | KeyCode::Char('l') => Key::Right,
        KeyCode::Char(digit) => Key::Number(usize::try_from(digit.to_digit(10)?).ok()?),
        _ => return None,
    })
}
