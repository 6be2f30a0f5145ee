//! Differences between a folder and what it should show.

use std::fs;

use super::*;

impl Ground {
    fn differing(&self) -> Vec<(String, String)> {
        let stored = self.stored.lock().unwrap().clone();
        let mut set = stored.render();
        set.views.extend(stored.documents.iter().map(|(path, rev)| document(path, *rev)));
        let found = differences(&set, &mut Fake::new(&self.stored)).unwrap().unwrap();
        found.into_iter().map(|difference| (difference.path, difference.why)).collect()
    }
}

#[test]
fn a_folder_in_step_differs_in_nothing_and_a_damaged_one_is_told() {
    type Damage = fn(&Path);
    let flip: Damage = |path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[12] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let table: &[(&str, Damage, &str)] = &[
        (VIEW, flip, "it differs"),
        (LOG, flip, "it differs"),
        (LESSONS, flip, "it differs"),
        ("tasks/T1.md", flip, "it differs"),
        (VIEW, |path| fs::remove_file(path).unwrap(), "it is missing"),
        (LOG, |path| fs::remove_file(path).unwrap(), "it is missing"),
        (LOG, |path| fs::write(path, "").unwrap(), "it differs"),
        ("tasks/T1.md", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(), "it is missing"),
        (
            VIEW,
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("events.jsonl", path).unwrap();
            },
            "it is a symbolic link",
        ),
        (
            VIEW,
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            "it is a folder",
        ),
    ];
    for (path, damage, why) in table {
        let ground = Ground::new(8);
        let set = ground.stored.lock().unwrap().write("tasks/T1.md");
        ground.sync(&set).unwrap();
        assert_eq!(ground.differing(), []);
        damage(&ground.loop_folder().join(path));
        assert_eq!(ground.differing(), [((*path).to_owned(), (*why).to_owned())]);
    }
}

#[test]
fn another_version_in_the_header_is_no_difference() {
    let ground = Ground::new(1);
    let set = ground.stored.lock().unwrap().write("plan.md");
    ground.sync(&set).unwrap();
    let path = ground.loop_folder().join("plan.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("mcp: 1\n", "mcp: 0.9.12\n")).unwrap();
    assert_eq!(ground.differing(), []);
}

#[test]
fn a_pruned_log_is_compared_by_its_end() {
    let ground = Ground::new(6);
    ground.stored.lock().unwrap().pruned = 6;
    assert_eq!(ground.differing(), []);
    ground.step("after pruning", false).unwrap();
    assert_eq!(ground.differing(), []);
    let log = ground.loop_folder().join(LOG);
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("{\"seq\":7", "{\"seq\":8")).unwrap();
    assert_eq!(ground.differing(), [(LOG.to_owned(), "it differs".to_owned())]);
}

#[test]
fn a_loop_that_went_on_meanwhile_is_rendered_anew() {
    let ground = Ground::new(3);
    let old = ground.stored.lock().unwrap().render();
    ground.step("meanwhile", true).unwrap();
    let found = differences(&old, &mut Fake::new(&ground.stored)).unwrap();
    assert_eq!(found, Some(Vec::new()));
}

#[test]
fn no_folder_is_all_missing_and_no_root_is_none() {
    let ground = Ground::new(2);
    let set = ground.stored.lock().unwrap().render();
    fs::remove_dir_all(ground.root.join(".projects")).unwrap();
    assert_eq!(ground.differing().len(), 3);
    assert!(!ground.root.join(".projects").exists());
    fs::rename(&ground.root, ground.root.with_file_name("moved")).unwrap();
    assert_eq!(differences(&set, &mut Fake::new(&ground.stored)).unwrap(), None);
}
