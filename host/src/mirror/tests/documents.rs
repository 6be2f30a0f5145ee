//! Documents: each follows its own revision, whatever became of the views.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;

const PLAN: &str = "plan.md";
const TASK: &str = "tasks/T1.md";

impl Ground {
    fn write(&self, path: &str) -> views::ViewSet {
        self.stored.lock().unwrap().write(path)
    }
}

#[test]
fn a_document_comes_after_the_views_and_makes_its_folders() {
    let ground = Ground::new(0);
    let set = ground.write(TASK);
    assert_eq!(ground.sync(&set).unwrap(), written(&[LOG, VIEW, LESSONS, TASK]));
    let set = ground.write(TASK);
    assert_eq!(ground.sync(&set).unwrap(), written(&[LOG, VIEW, TASK]));
    ground.assert_in_step("two revisions");
}

#[test]
fn calls_out_of_order_end_with_the_newest_of_each_document() {
    let ground = Ground::new(1);
    let first = ground.write(PLAN);
    let other = ground.write(TASK);
    let second = ground.write(PLAN);
    assert_eq!(ground.sync(&second).unwrap(), written(&[LOG, VIEW, PLAN]));
    // The views are those of `second`; the document of another path is still to come.
    assert_eq!(ground.sync(&other).unwrap(), written(&[TASK]));
    assert_eq!(ground.sync(&first).unwrap(), Synced::Skipped(Skip::Newer));
    ground.assert_in_step("three calls, backwards");

    let first = ground.write(PLAN);
    let second = ground.write(PLAN);
    assert_eq!(ground.sync(&first).unwrap(), Synced::Skipped(Skip::Newer));
    ground.sync(&second).unwrap();
    ground.assert_in_step("forwards");
}

#[test]
fn a_document_comes_also_where_the_views_are_rendered_anew() {
    let ground = Ground::new(2);
    fs::remove_file(ground.loop_folder().join(LESSONS)).unwrap();
    let set = ground.write(PLAN);
    let mut source = Fake::new(&ground.stored);
    assert_eq!(sync(&set, &mut source).unwrap(), written(&[LOG, VIEW, LESSONS, PLAN]));
    assert_eq!(source.renders, 1);
    ground.assert_in_step("rendered");
}

#[test]
fn a_document_outlives_a_database_that_was_put_back() {
    let ground = Ground::new(2);
    let copy = ground.stored.lock().unwrap().clone();
    let set = ground.write(PLAN);
    *ground.stored.lock().unwrap() = copy;
    // The log never had the event that was lost.
    assert_eq!(ground.sync(&set).unwrap(), written(&[VIEW, LESSONS, PLAN]));
    let text = fs::read_to_string(ground.loop_folder().join(PLAN)).unwrap();
    assert_eq!(text, content(PLAN, 1));
}

#[test]
fn a_loop_that_is_gone_or_moved_gets_no_document() {
    let ground = Ground::new(2);
    let set = ground.write(PLAN);
    ground.stored.lock().unwrap().gone = true;
    assert_eq!(ground.sync(&set).unwrap(), Synced::Skipped(Skip::Gone));
    ground.stored.lock().unwrap().gone = false;
    ground.stored.lock().unwrap().slug = "other".to_owned();
    fs::remove_file(ground.loop_folder().join(LESSONS)).unwrap();
    assert_eq!(ground.sync(&set).unwrap(), Synced::Skipped(Skip::Moved));
    assert!(!ground.loop_folder().join(PLAN).exists());
}

#[test]
fn what_stands_under_a_documents_name_is_replaced_and_never_followed() {
    type Stand = fn(&Path);
    let table: &[(&str, Stand)] = &[
        ("a link to outside", |path| symlink("../../../../outside/secret", path).unwrap()),
        ("a dangling link", |path| symlink("../../../../outside/new", path).unwrap()),
        ("a pipe", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("a second name", |path| {
            fs::hard_link(path.ancestors().nth(5).unwrap().join("outside/secret"), path).unwrap();
        }),
        ("what a killed call left", |path| {
            fs::write(path.with_file_name(".tmp-view"), "half").unwrap();
        }),
        ("a link under the temporary name", |path| {
            symlink("../../../../outside/secret", path.with_file_name(".tmp-view")).unwrap();
        }),
    ];
    for (name, stand) in table {
        let ground = Ground::new(2);
        stand(&ground.loop_folder().join(PLAN));
        let set = ground.write(PLAN);
        ground.sync(&set).unwrap();
        ground.assert_in_step(name);
    }
}

#[test]
fn a_document_that_cannot_be_written_stops_nothing_else() {
    type Stand = fn(&Ground);
    let table: &[(&str, &str, Stand)] = &[
        ("plan.md", "is a folder", |ground| fs::create_dir(ground.loop_folder().join(PLAN)).unwrap()),
        ("tasks", "is a symbolic link", |ground| {
            symlink(&ground.outside, ground.loop_folder().join("tasks")).unwrap();
        }),
        ("tasks", "is not a folder", |ground| {
            fs::write(ground.loop_folder().join("tasks"), "in the way").unwrap();
        }),
    ];
    for (place, found, stand) in table {
        let ground = Ground::new(2);
        stand(&ground);
        let path = if *place == PLAN { PLAN } else { TASK };
        let mut set = ground.write(path);
        set.views.push(document("after.md", 1));
        let error = ground.sync(&set).unwrap_err().to_string();
        let start = format!("{} {found}", ground.loop_folder().join(place).display());
        assert!(error.starts_with(&start), "{error}\nis not {start}");
        let after = fs::read_to_string(ground.loop_folder().join("after.md")).unwrap();
        assert_eq!(after, content("after.md", 1));
        let shown = fs::read_to_string(ground.loop_folder().join(VIEW)).unwrap();
        assert_eq!(shown, ground.stored.lock().unwrap().expected()[VIEW]);
        ground.assert_outside_untouched(found);
    }
}

#[test]
fn documents_come_also_when_the_views_fail() {
    let ground = Ground::new(2);
    let view = ground.loop_folder().join(VIEW);
    fs::remove_file(&view).unwrap();
    fs::create_dir(&view).unwrap();
    let set = ground.write(PLAN);
    let error = ground.sync(&set).unwrap_err().to_string();
    assert!(error.contains("loop.md is a folder"), "{error}");
    assert_eq!(fs::read_to_string(ground.loop_folder().join(PLAN)).unwrap(), content(PLAN, 1));
}

#[test]
fn a_read_only_folder_is_reported() {
    let ground = Ground::new(2);
    let folder = ground.loop_folder();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    // Who may write everywhere is not refused.
    let refused = fs::write(folder.join("probe"), "").is_err();
    let _ = fs::remove_file(folder.join("probe"));
    let set = ground.write(PLAN);
    let synced = ground.sync(&set);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(matches!(synced, Err(MirrorError::Io { .. })), refused);
    ground.sync(&set).unwrap();
    ground.assert_in_step("writable again");
}

#[test]
fn a_revision_that_cannot_be_asked_for_is_not_guessed() {
    struct Mute<'a>(Fake<'a>);
    impl Source for Mute<'_> {
        fn marks(&mut self) -> Result<Option<model::Marks>, SourceError> {
            self.0.marks()
        }
        fn log_lines(&mut self, after: u64) -> Result<Option<(String, u64)>, SourceError> {
            self.0.log_lines(after)
        }
        fn document_rev(&mut self, _: &str) -> Result<Option<u32>, SourceError> {
            Err("database is locked".into())
        }
        fn render_all(&mut self) -> Result<views::ViewSet, SourceError> {
            self.0.render_all()
        }
    }
    let ground = Ground::new(2);
    let set = ground.write(PLAN);
    let error = sync(&set, &mut Mute(Fake::new(&ground.stored))).unwrap_err().to_string();
    assert!(error.contains("database is locked"), "{error}");
    assert!(!ground.loop_folder().join(PLAN).exists());
    let shown = fs::read_to_string(ground.loop_folder().join(VIEW)).unwrap();
    assert_eq!(shown, ground.stored.lock().unwrap().expected()[VIEW]);
}

#[test]
fn writers_at_once_end_with_the_newest_of_each_document() {
    let ground = Ground::new(1);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let ground = &ground;
            scope.spawn(move || {
                for round in 0..60 {
                    let path = if (writer + round) % 2 == 0 { PLAN } else { TASK };
                    let set = ground.write(path);
                    ground.sync(&set).unwrap();
                }
            });
        }
    });
    ground.assert_in_step("at rest");
}
