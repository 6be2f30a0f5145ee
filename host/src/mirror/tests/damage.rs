//! Damaged and lost files: what the next call, or a rebuild, makes of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use proptest::prelude::*;

use super::*;

type Damage = fn(&Path);

fn cut(path: &Path, bytes: usize) {
    let text = fs::read(path).unwrap();
    fs::write(path, &text[..text.len() - bytes]).unwrap();
}

fn add(path: &Path, bytes: &[u8]) {
    let mut text = fs::read(path).unwrap();
    text.extend_from_slice(bytes);
    fs::write(path, text).unwrap();
}

/// Damage to the log that the next call has to see.
const LOG_DAMAGES: &[(&str, Damage)] = &[
    ("newline lost", |log| cut(log, 1)),
    ("cut inside a character", |log| cut(log, 5)),
    ("cut inside a line", |log| cut(log, 12)),
    ("emptied", |log| fs::write(log, "").unwrap()),
    ("removed", |log| fs::remove_file(log).unwrap()),
    ("half a line", |log| add(log, b"{\"seq\":9")),
    ("half a line with an end", |log| add(log, b"{\"seq\":9\n")),
    ("an older line again", |log| add(log, b"{\"seq\":2,\"note\":\"x\"}\n")),
    ("the next line forged", |log| add(log, b"{\"seq\":9,\"note\":\"x\"}\n")),
    ("a blank line", |log| add(log, b"\n")),
    ("zeros", |log| add(log, &[0; 4096])),
    ("two lines cut", |log| {
        let text = fs::read_to_string(log).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        fs::write(log, lines[..lines.len() - 2].concat()).unwrap();
    }),
    ("first line cut", |log| {
        let text = fs::read_to_string(log).unwrap();
        fs::write(log, text.split_once('\n').unwrap().1).unwrap();
    }),
    ("Windows newlines", |log| {
        let text = fs::read_to_string(log).unwrap();
        fs::write(log, text.replace('\n', "\r\n")).unwrap();
    }),
    ("a pipe", |log| {
        fs::remove_file(log).unwrap();
        let made = Command::new("mkfifo").arg(log).status().unwrap();
        assert!(made.success());
    }),
    ("a socket", |log| {
        fs::remove_file(log).unwrap();
        std::os::unix::net::UnixListener::bind(log).unwrap();
    }),
    ("a link to outside", |log| {
        fs::remove_file(log).unwrap();
        symlink("../../../../outside/secret", log).unwrap();
    }),
    ("a dangling link", |log| {
        fs::remove_file(log).unwrap();
        symlink("../../../../outside/new", log).unwrap();
    }),
    ("a second name outside", |log| {
        let other = log.ancestors().nth(5).unwrap().join("second-name");
        let _ = fs::remove_file(&other);
        fs::hard_link(log, other).unwrap();
    }),
    ("an old copy", |log| {
        let text = fs::read_to_string(log).unwrap();
        fs::write(log, text.split_inclusive('\n').take(3).collect::<String>()).unwrap();
    }),
];

#[test]
fn the_next_call_heals_a_damaged_log() {
    for (name, damage) in LOG_DAMAGES {
        let ground = Ground::new(8);
        damage(&ground.loop_folder().join(LOG));
        ground.step("after the damage", false).unwrap();
        ground.assert_in_step(name);
        ground.step("one more", true).unwrap();
        ground.assert_in_step(name);
    }
}

#[test]
fn a_file_with_a_second_name_is_not_appended_to() {
    let ground = Ground::new(3);
    let second = ground.root.join("second-name");
    fs::hard_link(ground.loop_folder().join(LOG), &second).unwrap();
    let before = fs::read(&second).unwrap();
    ground.step("more", false).unwrap();
    ground.assert_in_step("replaced");
    assert_eq!(fs::read(&second).unwrap(), before);
}

#[test]
fn the_next_call_heals_the_other_views() {
    let damages: &[(&str, &str, Damage)] = &[
        ("emptied", VIEW, |path| fs::write(path, "").unwrap()),
        ("removed", VIEW, |path| fs::remove_file(path).unwrap()),
        ("a link to outside", VIEW, |path| {
            fs::remove_file(path).unwrap();
            symlink("../../../../outside/secret", path).unwrap();
        }),
        ("a dangling link", VIEW, |path| {
            fs::remove_file(path).unwrap();
            symlink("../../../../outside/new", path).unwrap();
        }),
        ("emptied", LESSONS, |path| fs::write(path, "").unwrap()),
        ("removed", LESSONS, |path| fs::remove_file(path).unwrap()),
        ("longer", LESSONS, |path| add(path, b"- forged\n")),
        ("a link to outside", LESSONS, |path| {
            fs::remove_file(path).unwrap();
            symlink("../../../../outside/secret", path).unwrap();
        }),
        ("what a killed call left", ".tmp-view", |path| fs::write(path, "half").unwrap()),
        ("a link under our temporary name", ".tmp-view", |path| {
            symlink("../../../../outside/secret", path).unwrap();
        }),
        ("a second name under our temporary one", ".tmp-view", |path| {
            let secret = path.ancestors().nth(5).unwrap().join("outside/secret");
            fs::hard_link(secret, path).unwrap();
        }),
    ];
    for (name, view, damage) in damages {
        let ground = Ground::new(4);
        damage(&ground.loop_folder().join(view));
        ground.step("after the damage", false).unwrap();
        ground.assert_in_step(&format!("{view}: {name}"));
    }
}

#[test]
fn a_missing_view_does_not_cost_the_whole_log() {
    let ground = Ground::new(9);
    fs::remove_file(ground.loop_folder().join(LESSONS)).unwrap();
    let set = ground.change("more", false);
    let mut source = Fake::new(&ground.stored);
    let synced = sync(&set, &mut source).unwrap();
    assert_eq!(synced, written(&[LOG, VIEW, LESSONS]));
    assert_eq!((source.renders, source.pages_read), (1, 1));
    ground.assert_in_step("healed");
}

#[test]
fn damage_that_keeps_its_length_is_healed_by_a_rebuild() {
    let ground = Ground::new(6);
    for name in [LOG, VIEW, LESSONS] {
        let path = ground.loop_folder().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[3] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let synced = ground.rebuild().unwrap();
    assert_eq!(synced, written(&[LOG, VIEW, LESSONS]));
    ground.assert_in_step("rebuilt");
}

#[test]
fn folders_that_vanish_come_back() {
    let ground = Ground::new(5);
    for gone in [".projects/loops/fix-login", ".projects/loops", ".projects"] {
        fs::remove_dir_all(ground.root.join(gone)).unwrap();
        ground.step("after a clean", false).unwrap();
        ground.assert_in_step(gone);
    }
}

#[derive(Debug, Clone)]
enum Happening {
    /// A call; killed before its sync or not.
    Call {
        note: String,
        events: usize,
        lesson: bool,
        killed: bool,
    },
    /// The sync of an earlier call, late.
    Late(prop::sample::Index),
    Damage(prop::sample::Index),
    LoseLessons,
    LoseFolder,
    Rebuild,
}

fn happening() -> impl Strategy<Value = Happening> {
    let call = ("[a-zé\u{2028}]{0,12}", 0..4usize, any::<(bool, bool)>())
        .prop_map(|(note, events, (lesson, killed))| Happening::Call { note, events, lesson, killed });
    prop_oneof![
        8 => call,
        2 => any::<prop::sample::Index>().prop_map(Happening::Late),
        2 => any::<prop::sample::Index>().prop_map(Happening::Damage),
        1 => Just(Happening::LoseLessons),
        1 => Just(Happening::LoseFolder),
        1 => Just(Happening::Rebuild),
    ]
}

/// Whether there is a log of several whole lines; never opens a pipe.
fn is_sound(log: &Path) -> bool {
    fs::symlink_metadata(log).is_ok_and(|metadata| metadata.is_file())
        && fs::read_to_string(log).is_ok_and(|text| text.ends_with('\n') && text.lines().count() > 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_more_call_heals_any_history(
        history in prop::collection::vec(happening(), 0..24),
        by_rebuild: bool,
    ) {
        let ground = Ground::new(9);
        let mut earlier = Vec::new();
        for happening in history {
            let log = ground.loop_folder().join(LOG);
            match happening {
                Happening::Call { note, events, lesson, killed } => {
                    let set = ground.stored.lock().unwrap().change(&note, events, lesson);
                    if !killed {
                        ground.sync(&set).unwrap();
                        ground.assert_in_step("after a call that was not killed");
                    }
                    earlier.push(set);
                }
                Happening::Late(index) if !earlier.is_empty() => {
                    ground.sync(index.get(&earlier)).unwrap();
                }
                // Damage presupposes a log of a few whole lines.
                Happening::Damage(index) if is_sound(&log) => {
                    index.get(LOG_DAMAGES).1(&log);
                }
                Happening::Late(_) | Happening::Damage(_) => {}
                Happening::LoseLessons => {
                    let _ = fs::remove_file(ground.loop_folder().join(LESSONS));
                }
                Happening::LoseFolder => {
                    let _ = fs::remove_dir_all(ground.root.join(".projects"));
                }
                Happening::Rebuild => {
                    ground.rebuild().unwrap();
                    ground.assert_in_step("after a rebuild");
                }
            }
        }
        if by_rebuild {
            ground.rebuild().unwrap();
        } else {
            ground.step("one more", false).unwrap();
        }
        ground.assert_in_step("healed");
    }
}
