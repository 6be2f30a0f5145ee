//! Which calls write the folder, and how much of it.

use std::fs;

use super::*;

#[test]
fn a_new_loop_gets_its_folder_and_each_call_only_what_it_changed() {
    let ground = Ground::new(0);
    let set = ground.change("first", true);
    let mut source = Fake::new(&ground.stored);
    assert_eq!(sync(&set, &mut source).unwrap(), written(&[LOG, VIEW, LESSONS]));
    let set = ground.change("second", false);
    assert_eq!(sync(&set, &mut source).unwrap(), written(&[LOG, VIEW]));
    let set = ground.stored.lock().unwrap().change("two at once", 2, true);
    assert_eq!(sync(&set, &mut source).unwrap(), written(&[LOG, VIEW, LESSONS]));
    let set = ground.stored.lock().unwrap().change("no event", 0, false);
    assert_eq!(sync(&set, &mut source).unwrap(), written(&[VIEW]));
    assert_eq!((source.pages_read, source.renders), (0, 0));
    ground.assert_in_step("after four calls");
}

#[test]
fn a_log_that_only_misses_lines_is_not_written_anew() {
    let ground = Ground::new(20);
    let log = ground.loop_folder().join(LOG);
    let before = fs::metadata(&log).unwrap();
    for lost in 0..7 {
        ground.change(&format!("killed before its sync {lost}"), false);
    }
    let set = ground.change("alive", false);
    let mut source = Fake::new(&ground.stored);
    sync(&set, &mut source).unwrap();
    ground.assert_in_step("caught up");
    let after = fs::metadata(&log).unwrap();
    assert_eq!(inode(&before), inode(&after));
    // Eight lines in pages of three.
    assert_eq!(source.pages_read, 3);
}

fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[test]
fn the_folder_never_goes_back() {
    let ground = Ground::new(2);
    let slow = ground.change("slow", true);
    let slow_render = ground.stored.lock().unwrap().render();
    let quick = ground.change("quick", false);

    // Skipped whether or not the newer call was there before.
    let skipped = Synced::Skipped(Skip::Newer);
    assert_eq!(ground.sync(&slow).unwrap(), skipped);
    ground.sync(&quick).unwrap();
    ground.assert_in_step("the newer call wrote the lesson of the slower one");
    assert_eq!(ground.sync(&slow).unwrap(), skipped);
    ground.assert_in_step("left alone");

    // A request for the whole folder is answered with the folder of now.
    fs::write(ground.loop_folder().join(VIEW), "").unwrap();
    let synced = ground.sync(&slow_render).unwrap();
    assert_eq!(synced, written(&[LOG, VIEW, LESSONS]));
    ground.assert_in_step("rendered anew");
}

#[test]
fn a_set_from_the_future_is_not_believed() {
    let ground = Ground::new(3);
    let copy = ground.stored.lock().unwrap().clone();
    let set = ground.change("lost with the database", true);
    *ground.stored.lock().unwrap() = copy;
    ground.sync(&set).unwrap();
    ground.assert_in_step("as the database is now");
}

#[test]
fn a_loop_that_is_gone_or_moved_is_left_alone() {
    let ground = Ground::new(0);
    let set = ground.change("first", false);
    ground.stored.lock().unwrap().gone = true;
    assert_eq!(ground.sync(&set).unwrap(), Synced::Skipped(Skip::Gone));
    assert!(!ground.root.join(".projects").exists());

    let ground = Ground::new(2);
    let set = ground.change("more", false);
    ground.stored.lock().unwrap().gone = true;
    let before = files_in(&ground.loop_folder());
    assert_eq!(ground.sync(&set).unwrap(), Synced::Skipped(Skip::Gone));
    assert_eq!(files_in(&ground.loop_folder()), before);

    let ground = Ground::new(2);
    fs::remove_file(ground.loop_folder().join(LESSONS)).unwrap();
    let set = ground.change("more", false);
    ground.stored.lock().unwrap().slug = "other".to_owned();
    let before = files_in(&ground.loop_folder());
    assert_eq!(ground.sync(&set).unwrap(), Synced::Skipped(Skip::Moved));
    assert_eq!(files_in(&ground.loop_folder()), before);
}

#[test]
fn a_pruned_log_grows_but_is_never_rebuilt() {
    let ground = Ground::new(6);
    ground.stored.lock().unwrap().pruned = 6;
    assert_eq!(ground.step("after pruning", false).unwrap(), written(&[LOG, VIEW]));
    ground.assert_in_step("it grows");

    let left = |files: &[&str]| Synced::Written {
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        left: vec![LOG.to_owned()],
    };
    assert_eq!(ground.rebuild().unwrap(), left(&[VIEW, LESSONS]));
    ground.assert_in_step("what is there stays");

    let log = ground.loop_folder().join(LOG);
    fs::write(&log, "cut by hand").unwrap();
    assert_eq!(ground.step("more", false).unwrap(), left(&[VIEW]));
    assert_eq!(fs::read_to_string(&log).unwrap(), "cut by hand");
    assert!(!ground.loop_folder().join(".tmp-view").exists());
}

#[test]
fn a_source_that_fails_is_named_and_nothing_is_touched() {
    struct Broken;
    impl Source for Broken {
        fn marks(&mut self) -> Result<Option<model::Marks>, SourceError> {
            Err("database is locked".into())
        }
        fn log_lines(&mut self, _: u64) -> Result<Option<(String, u64)>, SourceError> {
            Err("database is locked".into())
        }
        fn document_rev(&mut self, _: &str) -> Result<Option<u32>, SourceError> {
            Err("database is locked".into())
        }
        fn render_all(&mut self) -> Result<views::ViewSet, SourceError> {
            Err("database is locked".into())
        }
    }
    let ground = Ground::new(2);
    let before = files_in(&ground.loop_folder());
    let set = ground.change("more", false);
    let error = sync(&set, &mut Broken).unwrap_err().to_string();
    assert!(error.contains(SLUG) && error.contains("database is locked"));
    assert_eq!(files_in(&ground.loop_folder()), before);
}

#[test]
fn a_source_that_does_not_advance_ends() {
    struct Stuck<'a>(Fake<'a>);
    impl Source for Stuck<'_> {
        fn marks(&mut self) -> Result<Option<model::Marks>, SourceError> {
            self.0.marks()
        }
        fn log_lines(&mut self, after: u64) -> Result<Option<(String, u64)>, SourceError> {
            Ok(Some((String::new(), after)))
        }
        fn document_rev(&mut self, path: &str) -> Result<Option<u32>, SourceError> {
            self.0.document_rev(path)
        }
        fn render_all(&mut self) -> Result<views::ViewSet, SourceError> {
            self.0.render_all()
        }
    }
    let ground = Ground::new(2);
    let set = ground.stored.lock().unwrap().render();
    let refused = sync(&set, &mut Stuck(Fake::new(&ground.stored)));
    assert!(matches!(refused, Err(MirrorError::Contract { .. })));
    ground.assert_in_step("the log stayed");
}

#[test]
fn writers_at_once_end_with_the_newest_render() {
    let ground = Ground::new(1);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let ground = &ground;
            scope.spawn(move || {
                for round in 0..150 {
                    let note = format!("writer {writer} round {round}");
                    ground.step(&note, round % 5 == 0).unwrap();
                    if round % 50 == 0 {
                        ground.rebuild().unwrap();
                    }
                }
            });
        }
    });
    ground.assert_in_step("at rest");
}
