//! The mirror against a loop in memory, on a real folder.
//!
//! [`Ground`] holds both and compares them: almost every test changes the loop or
//! damages the folder, syncs, and asks whether the two are in step.

mod compare;
mod damage;
mod documents;
mod place;
mod protocol;
mod walls;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;

use super::*;

const LOG: &str = "events.jsonl";
const VIEW: &str = "loop.md";
const LESSONS: &str = "memory.md";
const SLUG: &str = "fix-login";

/// A stored loop: every change adds an event, some add a lesson.
#[derive(Clone)]
struct Stored {
    root: String,
    slug: String,
    revision: u64,
    lines: Vec<String>,
    lessons: Vec<String>,
    /// Events up to this one are no longer stored.
    pruned: usize,
    gone: bool,
    /// The newest revision of each document.
    documents: BTreeMap<String, u32>,
}

impl Stored {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_str().unwrap().to_owned(),
            slug: SLUG.to_owned(),
            revision: 0,
            lines: Vec::new(),
            lessons: Vec::new(),
            pruned: 0,
            gone: false,
            documents: BTreeMap::new(),
        }
    }

    /// One committed call that appends `events` events; its views.
    fn change(&mut self, note: &str, events: usize, lesson: bool) -> views::ViewSet {
        self.revision += 1;
        let before = self.lines.len();
        for seq in before + 1..=before + events {
            self.lines.push(format!("{{\"seq\":{seq},\"note\":\"{note}\"}}\n"));
        }
        if lesson {
            self.lessons.push(format!("- {note}\n"));
        }
        let mut set = self.render();
        set.views[2].content = views::Content::Log(self.log(&self.lines[before..], false));
        if !lesson {
            set.views[1].content = views::Content::Kept(self.lessons_view().len() as u64);
        }
        set
    }

    fn log(&self, lines: &[String], rebuild: bool) -> views::Log {
        views::Log {
            seq: self.lines.len() as u64,
            bytes: self.lines.concat().len() as u64,
            lines: lines.concat(),
            rebuild,
        }
    }

    fn lessons_view(&self) -> String {
        format!("# Lessons\n{}", self.lessons.concat())
    }

    /// One committed call that writes the next revision of a document; its views.
    fn write(&mut self, path: &str) -> views::ViewSet {
        let mut set = self.change("document", 1, false);
        let rev = self.documents.entry(path.to_owned()).or_default();
        *rev += 1;
        set.views.push(document(path, *rev));
        set
    }

    /// Every view, as a call of `loop_render` gives them.
    fn render(&self) -> views::ViewSet {
        let view = |path: &str, content| views::View { path: path.to_owned(), content };
        let text = format!("# Loop\n- revision: {}\n", self.revision);
        views::ViewSet {
            loop_id: "00000000-0000-4000-8000-000000000001".to_owned(),
            slug: self.slug.clone(),
            project_root: self.root.clone(),
            revision: self.revision,
            // The log comes last: the mirror sees to the order itself.
            views: vec![
                view(VIEW, views::Content::Whole(text)),
                view(LESSONS, views::Content::Whole(self.lessons_view())),
                view(LOG, views::Content::Log(self.log(&[], true))),
            ],
        }
    }

    fn expected(&self) -> BTreeMap<String, String> {
        let views = self.render().views;
        let text = |content| match content {
            views::Content::Whole(text) => text,
            views::Content::Log(_) => self.lines.concat(),
            views::Content::Kept(_) | views::Content::Document(_) => unreachable!("rendered whole"),
        };
        let views = views.into_iter().map(|view| (view.path, text(view.content)));
        let documents = self.documents.iter().map(|(path, rev)| (path.clone(), content(path, *rev)));
        views.chain(documents).collect()
    }
}

/// What a document holds at one of its revisions.
fn content(path: &str, rev: u32) -> String {
    format!("---\ntype: document\nmcp: 1\n---\n{path} at {rev}\n")
}

fn document(path: &str, rev: u32) -> views::View {
    let text = content(path, rev);
    views::View {
        path: path.to_owned(),
        content: views::Content::Document(views::DocumentView { rev, text }),
    }
}

/// The stored loop as the mirror asks for it, with a count of what it asked.
struct Fake<'a> {
    stored: &'a Mutex<Stored>,
    page: usize,
    pages_read: usize,
    renders: usize,
}

impl<'a> Fake<'a> {
    fn new(stored: &'a Mutex<Stored>) -> Self {
        Self { stored, page: 3, pages_read: 0, renders: 0 }
    }
}

impl Source for Fake<'_> {
    fn marks(&mut self) -> Result<Option<model::Marks>, SourceError> {
        let stored = self.stored.lock().unwrap();
        Ok((!stored.gone).then(|| model::Marks {
            revision: stored.revision,
            event_seq: stored.lines.len() as u64,
            log_bytes: stored.lines.concat().len() as u64,
            step_seq: 0,
            memory_seq: stored.lessons.len() as u64,
            memory_bytes: stored.lessons_view().len() as u64,
        }))
    }

    fn log_lines(&mut self, after: u64) -> Result<Option<(String, u64)>, SourceError> {
        self.pages_read += 1;
        let stored = self.stored.lock().unwrap();
        let after = usize::try_from(after)?.max(stored.pruned);
        let last = stored.lines.len().min(after + self.page);
        Ok((after < last).then(|| (stored.lines[after..last].concat(), last as u64)))
    }

    fn document_rev(&mut self, path: &str) -> Result<Option<u32>, SourceError> {
        Ok(self.stored.lock().unwrap().documents.get(path).copied())
    }

    fn render_all(&mut self) -> Result<views::ViewSet, SourceError> {
        self.renders += 1;
        Ok(self.stored.lock().unwrap().render())
    }
}

/// A project, a place outside of it, and a loop with a few changes in step.
struct Ground {
    _guard: TempDir,
    root: PathBuf,
    outside: PathBuf,
    stored: Mutex<Stored>,
}

impl Ground {
    fn new(changes: usize) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(guard.path()).unwrap();
        let (root, outside) = (top.join("app"), top.join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "untouched").unwrap();
        let stored = Mutex::new(Stored::new(&root));
        let ground = Self { _guard: guard, root, outside, stored };
        for index in 0..changes {
            ground.step("é", index % 3 == 0).unwrap();
        }
        ground
    }

    fn loop_folder(&self) -> PathBuf {
        self.root.join(".projects/loops").join(SLUG)
    }

    fn change(&self, note: &str, lesson: bool) -> views::ViewSet {
        self.stored.lock().unwrap().change(note, 1, lesson)
    }

    fn sync(&self, set: &views::ViewSet) -> Result<Synced, MirrorError> {
        sync(set, &mut Fake::new(&self.stored))
    }

    fn step(&self, note: &str, lesson: bool) -> Result<Synced, MirrorError> {
        self.sync(&self.change(note, lesson))
    }

    fn rebuild(&self) -> Result<Synced, MirrorError> {
        let set = self.stored.lock().unwrap().render();
        self.sync(&set)
    }

    fn assert_in_step(&self, why: &str) {
        let expected = self.stored.lock().unwrap().expected();
        assert_eq!(files_in(&self.loop_folder()), expected, "{why}");
        self.assert_outside_untouched(why);
    }

    fn assert_outside_untouched(&self, why: &str) {
        let untouched = BTreeMap::from([("secret".to_owned(), "untouched".to_owned())]);
        assert_eq!(files_in(&self.outside), untouched, "{why}");
    }
}

/// Every file below a folder; asserts that there is nothing else.
fn files_in(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push((entry.path(), format!("{name}/")));
                continue;
            }
            assert!(kind.is_file(), "{:?} is no file", entry.path());
            let text = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
            found.insert(name, text);
        }
    }
    found
}

fn written(files: &[&str]) -> Synced {
    Synced::Written { files: files.iter().map(|file| (*file).to_owned()).collect(), left: Vec::new() }
}
