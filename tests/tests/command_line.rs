//! The command line for people: each command in words and as JSON, and that it says
//! what the tools say.

use loop_state_tests::{Client, SLUG, World, look};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

/// What a command came to.
struct Ran {
    status: i32,
    out: String,
    err: String,
}

#[track_caller]
fn run_with(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = world.command();
    command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let status = output.status.code().unwrap_or_else(|| panic!("{arguments:?} was killed"));
    let ran = Ran { status, out: text(output.stdout), err: text(output.stderr) };
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

/// What a command prints that has to pass.
#[track_caller]
fn shown(world: &World, arguments: &[&str]) -> String {
    let ran = run_with(world, arguments, &[]);
    assert_eq!(ran.status, 0, "{arguments:?}: {}{}", ran.out, ran.err);
    assert_eq!(ran.err, "", "{arguments:?}");
    ran.out
}

/// The same as JSON, which is one line.
#[track_caller]
fn answer(world: &World, arguments: &[&str]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    let text = shown(world, &arguments);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("no JSON ({e}): {text}"))
}

/// What a command says that has to be refused, on standard error alone.
#[track_caller]
fn refused(world: &World, arguments: &[&str]) -> String {
    let ran = run_with(world, arguments, &[]);
    assert_eq!(ran.status, 1, "{arguments:?}: {}{}", ran.out, ran.err);
    assert_eq!(ran.out, "", "{arguments:?}");
    ran.err.trim_end().to_owned()
}

#[track_caller]
fn assert_has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

/// A world with the loop [`SLUG`], two tasks and a document in two revisions.
fn world_with_loop() -> (World, Client) {
    let world = World::new();
    let mut client = world.client_with_loop();
    let tasks = json!([
        { "taskid": "T1", "title": "one", "tech": "rust" },
        { "taskid": "T2", "title": "two", "tech": "go", "depends_on": ["T1"] },
    ]);
    client.ok("tasks_derive", json!({ "tasks": tasks }));
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "first" }));
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "# Plan\n\nsecond\n" }));
    (world, client)
}

fn finish(client: &mut Client) {
    client.ok("loop_finish", json!({ "status": "aborted" }));
}

#[test]
fn lists_and_one_loop() {
    let (world, mut client) = world_with_loop();
    let text = shown(&world, &["list"]);
    assert_has(&text, &["SLUG", "TITLE", "demo", "active", "0/2", "try it"]);
    assert_eq!(answer(&world, &["list"]), client.ok("loop_list", json!({})));

    let everywhere = answer(&world, &["list", "--all-projects"]);
    let row = &everywhere["loops"][0];
    assert_eq!((&row["slug"], &row["project"]), (&json!("demo"), &json!("project")));
    assert_eq!(row["tasks"], json!({ "total": 2, "by_status": { "pending": 2 } }));
    assert_has(&shown(&world, &["list", "--all-projects"]), &["PROJECT", "project", "demo"]);

    let text = shown(&world, &["show", SLUG]);
    assert_has(&text, &["goal", "try it", "PHASE", "preflight", "T1", "T2", "DEPENDS ON"]);
    assert_eq!(answer(&world, &["show", SLUG]), client.ok("loop_get", json!({})));
    assert_eq!(refused(&world, &["show", "demp"]), client.refused("loop_get", json!({ "loopSlug": "demp" })));

    finish(&mut client);
    assert_has(&shown(&world, &["list"]), &["no active loop"]);
    assert_has(&shown(&world, &["list", "--all-projects"]), &["no active loop"]);
    assert_has(&shown(&world, &["list", "--finished"]), &["aborted"]);
    assert_has(&shown(&world, &["list", "--all-projects", "--finished"]), &["aborted"]);
}

#[test]
fn long_lists_and_documents_come_whole() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let tasks: Vec<_> =
        (0..400).map(|n| json!({ "taskid": format!("T{n}"), "title": "x".repeat(90) })).collect();
    client.ok("tasks_derive", json!({ "tasks": tasks }));
    let whole = answer(&world, &["show", SLUG]);
    assert_eq!(whole["tasks"].as_array().map(Vec::len), Some(400));
    assert_eq!(whole.get("more"), None);

    for n in 0..60 {
        client.ok("loop_init", json!({ "goal": "another", "loopSlug": format!("loop-{n}") }));
    }
    assert_eq!(answer(&world, &["list"])["loops"].as_array().map(Vec::len), Some(61));

    let text: String = (0..9_000).map(|n| format!("line {n} \"ä\"\n")).collect();
    client.ok("loop_writeFile", json!({ "path": "long.md", "content": text }));
    assert_eq!(shown(&world, &["document", SLUG, "long.md"]), text);
    assert_eq!(answer(&world, &["document", SLUG, "long.md"])["content"], json!(text));
}

#[test]
fn documents_of_living_and_deleted_loops() {
    let (world, mut client) = world_with_loop();
    assert_has(&shown(&world, &["documents", SLUG]), &["DOCUMENT", "plan.md", "2"]);
    let listed = answer(&world, &["documents", SLUG]);
    assert_eq!(listed["documents"][0]["rev"], 2);
    let id = listed["loop_id"].as_str().expect("an id").to_owned();
    assert_eq!(answer(&world, &["documents", &id]), listed);

    assert_eq!(shown(&world, &["document", SLUG, "plan.md"]), "# Plan\n\nsecond\n");
    assert_eq!(shown(&world, &["document", SLUG, "plan.md", "--rev", "1"]), "first");
    let read = answer(&world, &["document", SLUG, "plan.md"]);
    assert_eq!(read, client.ok("loop_readFile", json!({ "path": "plan.md" })));
    for (path, rev) in [("plam.md", None), ("plan.md", Some(7)), ("../plan.md", None)] {
        let mut arguments = vec!["document".to_owned(), SLUG.to_owned(), path.to_owned()];
        arguments.extend(rev.into_iter().flat_map(|rev: u32| ["--rev".to_owned(), rev.to_string()]));
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let told = client.refused("loop_readFile", json!({ "path": path, "rev": rev }));
        assert_eq!(refused(&world, &arguments), told);
    }
    assert_has(&refused(&world, &["documents", "demp"]), &["loop not found: demp (nearest: demo)"]);

    finish(&mut client);
    client.ok("loop_delete", json!({ "confirm": SLUG }));
    assert_has(&refused(&world, &["documents", SLUG]), &["loop not found"]);
    assert_has(&shown(&world, &["documents", "--deleted"]), &["LOOP", &id]);
    assert_eq!(answer(&world, &["documents", "--deleted"])["loops"][0]["revisions"], 2);
    assert_has(&shown(&world, &["documents", &id, "--deleted"]), &["plan.md"]);
    assert_eq!(shown(&world, &["document", &id, "plan.md", "--rev", "1"]), "first");
    assert_eq!(answer(&world, &["document", &id, "plan.md"])["content"], "# Plan\n\nsecond\n");
    assert_has(&refused(&world, &["document", &id, "x.md"]), &["no document", "plan.md"]);
    assert_has(&refused(&world, &["document", &id, "plan.md", "--rev", "3"]), &["the newest is 2"]);
    assert_has(&refused(&world, &["documents", "--deleted", SLUG]), &["only the id is kept"]);
}

#[test]
fn archives_from_making_to_deleting() {
    let (world, mut client) = world_with_loop();
    std::fs::write(world.folder(SLUG).join("picture.bin"), [0, 159, 146, 150]).expect("a file");
    let active = client.refused("loop_archive", json!({}));
    assert_eq!(refused(&world, &["archive", SLUG]), active);
    finish(&mut client);

    let made = answer(&world, &["archive", SLUG]);
    let id = made["archiveId"].as_str().expect("an id");
    assert_has(&shown(&world, &["archives"]), &["ARCHIVE", id, "demo", "aborted"]);
    assert_eq!(answer(&world, &["archives"]), client.ok("archive_list", json!({ "limit": 9 })));
    assert_has(&shown(&world, &["archives", "--search", "nothing like it"]), &["no such archive"]);
    assert_has(&shown(&world, &["archives", "--search", "TRY"]), &[id]);
    assert_has(&shown(&world, &["archives", id]), &["slug", "demo", "FILE", "plan.md", "picture.bin"]);
    assert_eq!(answer(&world, &["archives", id]), client.ok("archive_get", json!({ "archiveId": id })));
    assert_eq!(shown(&world, &["archives", id, "plan.md"]), "# Plan\n\nsecond\n");
    let raw = world.command().args(["archives", id, "picture.bin"]).output().expect("it runs");
    assert_eq!(raw.stdout, [0, 159, 146, 150]);
    assert_eq!(answer(&world, &["archives", id, "picture.bin"])["encoding"], "base64");
    let told = client.refused("archive_readFile", json!({ "archiveId": id, "path": "plam.md" }));
    assert_eq!(refused(&world, &["archives", id, "plam.md"]), told);

    // The folder stayed: nothing in it differs from what comes back.
    let back = answer(&world, &["restore", id]);
    assert_eq!(back["loopSlug"], "demo");
    let told = client.refused("archive_restore", json!({ "archiveId": id }));
    assert_eq!(refused(&world, &["restore", id]), told);
    let text = shown(
        &world,
        &["restore", id, "--as", "again", "--to", "../elsewhere/deep"]
            .map(|a| if a == "../elsewhere/deep" { "elsewhere" } else { a }),
    );
    assert_has(&text, &["Restored loop again", "/project/elsewhere"]);
    assert!(world.project().join("elsewhere/.projects/loops/again/picture.bin").is_file());

    for confirm in [None, Some("demo")] {
        let mut arguments = vec!["archives", "delete", id];
        arguments.extend(confirm.into_iter().flat_map(|confirm| ["--confirm", confirm]));
        let said = refused(&world, &arguments);
        let asked = json!({ "archiveId": id, "confirm": confirm.unwrap_or_default() });
        assert_eq!(said, client.refused("archive_delete", asked));
        assert!(!said.contains(id), "the error holds the confirmation: {said}");
    }
    assert_has(&shown(&world, &["archives", "delete", id, "--confirm", id]), &["Deleted", id]);
    assert_has(&shown(&world, &["archives"]), &["no such archive"]);
    assert_has(&refused(&world, &["archives", id]), &["no archive with the id", id]);
}

#[test]
fn what_goes_for_good_is_shown_or_confirmed_first() {
    const START: i64 = 1_787_044_320_000;
    let world = World::with_clock(START);
    let mut client = world.client_with_loop();
    let told = client.refused("loop_delete", json!({ "confirm": SLUG }));
    assert_eq!(refused(&world, &["delete", SLUG, "--confirm", SLUG]), told);
    finish(&mut client);
    world.set_clock(START + 40 * 24 * 60 * 60 * 1_000);

    let before = look::rows(&world.database());
    assert_has(&shown(&world, &["prune", "--older-than", "30"]), &["demo", "--apply", "Nothing was changed"]);
    assert_eq!(answer(&world, &["prune", "--older-than", "30"])["pruned"], 0);
    assert_has(&shown(&world, &["prune", "--older-than", "60"]), &["No loop"]);
    look::assert_same(&before, &look::rows(&world.database()), "the database");
    assert_eq!(answer(&world, &["prune", "--older-than", "30", "--apply"])["pruned"], 1);
    assert_eq!(look::number(&world.database(), "SELECT count(*) FROM event"), 0);
    assert_has(&shown(&world, &["prune", "--older-than", "30", "--apply"]), &["history of 0 loops"]);

    let said = refused(&world, &["delete", SLUG]);
    assert_eq!(said, client.refused("loop_delete", json!({ "confirm": "" })));
    assert!(!said.contains(SLUG), "the error holds the confirmation: {said}");
    assert_has(&shown(&world, &["delete", SLUG, "--confirm", SLUG, "--purge-documents"]), &["purged"]);
    let freed = answer(&world, &["vacuum"]);
    assert!(freed["bytes_after"].is_u64() && freed["bytes_before"].is_u64(), "{freed}");
    assert_has(&shown(&world, &["vacuum"]), &["KiB"]);
}

#[test]
fn projects_are_called_found_and_merged() {
    let (world, _client) = world_with_loop();
    let other = world.top().join("other");
    std::fs::create_dir(&other).expect("a folder");
    let mut command = world.command();
    let mut elsewhere = Client::spawn(command.current_dir(&other));
    elsewhere.initialize();
    elsewhere.ok("loop_init", json!({ "goal": "over there", "loopSlug": "there" }));

    let listed = answer(&world, &["projects"]);
    let id_of = |name: &str| -> String {
        let of_name = listed["projects"].as_array().into_iter().flatten().find(|p| p["name"] == name);
        of_name.and_then(|p| p["id"].as_str()).unwrap_or_else(|| panic!("{name}: {listed}")).to_owned()
    };
    let (keep, drop) = (id_of("project"), id_of("other"));
    assert_has(&shown(&world, &["projects"]), &["PROJECT", &keep, &drop, "(here)"]);
    assert_has(&shown(&world, &["projects", "duplicates"]), &["No two projects"]);
    assert_eq!(answer(&world, &["projects", "duplicates"]), json!({ "duplicates": [] }));

    let edited = answer(
        &world,
        &["projects", "edit", "project", "--name", "The app", "--icon", "🦀", "--tag", "a", "--tag", "b"],
    );
    assert_eq!(json!([edited["name"], edited["icon"], edited["tags"]]), json!(["The app", "🦀", ["a", "b"]]));
    assert_has(&shown(&world, &["projects"]), &["🦀 The app", "a, b"]);
    let cleared = answer(&world, &["projects", "edit", &keep, "--icon", "", "--tag", ""]);
    assert_eq!(json!([cleared["name"], cleared["icon"], cleared["tags"]]), json!(["The app", null, []]));
    assert_has(&refused(&world, &["projects", "edit", "nobody", "--name", "x"]), &["no project", "nobody"]);
    assert_has(&refused(&world, &["projects", "edit", &keep, "--name", " "]), &["blank"]);
    assert_has(&refused(&world, &["projects", "edit", &keep]), &["nothing to change"]);

    assert_has(&refused(&world, &["projects", "merge", &keep, &keep]), &["the same project"]);
    let merged = answer(&world, &["projects", "merge", "The app", "other"]);
    assert_eq!(json!([merged["loops"], merged["roots"]]), json!([1, 1]));
    let left = answer(&world, &["projects"]);
    assert_eq!(left["projects"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left["projects"][0]["loops"], 2);
    // The server over there is in the same project from its next call on.
    assert_has(&elsewhere.ok("loop_list", json!({})).to_string(), &["there", "demo"]);
    assert_has(&shown(&world, &["list"]), &["there", "ROOT", "/other"]);
}

#[test]
fn nothing_breaks_the_terminal() {
    let world = World::new();
    let mut client = world.client();
    let title = "\u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}evil\u{200b} 日本語の題名 👨‍👩‍👧 end";
    client.ok("loop_init", json!({ "goal": title, "title": title, "loopSlug": SLUG }));
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": title }] }));
    for arguments in
        [["list", "--finished"], ["show", SLUG], ["list", "--all-projects"], ["doctor", "--json"]]
    {
        for columns in ["20", "40", "80", "400"] {
            let ran = run_with(&world, &arguments, &[("COLUMNS", columns)]);
            let control = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
            assert!(!ran.out.contains(control), "{arguments:?}: {:?}", ran.out);
        }
    }
    let narrow = run_with(&world, &["list"], &[("COLUMNS", "40")]).out;
    assert_has(&narrow, &["slug", "demo", "␛[2J␛]0;owned␇", "{U+202E}"]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    // In a pipe without a width nothing is cut.
    assert_has(&shown(&world, &["list"]), &["日本語の題名 👨‍👩‍👧 end"]);
    // As JSON it is what it is.
    assert_eq!(answer(&world, &["list"])["loops"][0]["title"], title);
    let said = refused(&world, &["show", "\u{1b}[31mdemo"]);
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn usage_and_closed_pipes() {
    let world = World::new();
    for wrong in [
        &["list", "--nope"][..],
        &["show"],
        &["documents"],
        &["prune"],
        &["archives", "a", "--search", "x"],
        &["export", "f", "--all", "g"],
    ] {
        let ran = run_with(&world, wrong, &[]);
        assert_eq!(ran.status, 2, "{wrong:?}: {}{}", ran.out, ran.err);
        assert_has(&ran.err, &["Usage:"]);
    }
    assert_has(&shown(&world, &["--help"]), &["Exit status:", "doctor", "archives"]);
    let mut client = world.client_with_loop();
    client.ok("loop_writeFile", json!({ "path": "big.md", "content": "x".repeat(900_000) }));
    let mut child = world
        .command()
        .args(["document", SLUG, "big.md"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn a_backup_is_a_database() {
    let (world, _client) = world_with_loop();
    let copy = world.top().join("copy.db");
    let path = copy.to_str().expect("UTF-8");
    assert_eq!(answer(&world, &["backup", path])["file"], path);
    look::assert_same(&look::rows(&world.database()), &look::rows(&copy), "the copy");
    look::assert_sound(&copy);
    assert_has(&refused(&world, &["backup", path]), &["is there already"]);

    let mut other = World::new();
    other.args = vec!["--project-root".into(), world.project().into()];
    std::fs::create_dir(other.state()).expect("a folder");
    std::fs::copy(&copy, other.database()).expect("copied");
    assert_eq!(answer(&other, &["list"]), answer(&world, &["list"]));
    assert_eq!(answer(&other, &["show", SLUG]), answer(&world, &["show", SLUG]));
    assert_has(&shown(&world, &["backup", &format!("{path}2")]), &["copy.db2"]);
}

/// Everything that a user sees of a world's loops and archives.
fn seen(world: &World) -> Vec<Value> {
    let mut seen =
        vec![answer(world, &["list", "--all-projects", "--finished"]), answer(world, &["archives"])];
    let slugs: Vec<_> =
        seen[0]["loops"].as_array().into_iter().flatten().map(|l| l["slug"].clone()).collect();
    for slug in slugs {
        let slug = slug.as_str().expect("a slug");
        seen.push(answer(world, &["show", slug]));
        seen.push(answer(world, &["documents", slug]));
        seen.push(answer(world, &["document", slug, "plan.md"]));
        seen.push(answer(world, &["document", slug, "plan.md", "--rev", "1"]));
    }
    seen
}

/// A second state folder for the same project.
fn beside(world: &World) -> World {
    let mut other = World::new();
    other.args = vec!["--project-root".into(), world.project().into()];
    other
}

#[test]
fn what_is_exported_comes_back_elsewhere() {
    let (world, mut client) = world_with_loop();
    client.ok("loop_init", json!({ "goal": "old", "loopSlug": "old" }));
    client.ok("loop_writeFile", json!({ "loopSlug": "old", "path": "plan.md", "content": "old" }));
    client.ok("loop_finish", json!({ "loopSlug": "old", "status": "aborted" }));
    client.ok("loop_archive", json!({ "loopSlug": "old" }));
    let file = world.top().join("all.export");
    let path = file.to_str().expect("UTF-8");
    let done = answer(&world, &["export", "--all", path]);
    assert_eq!(done["file"], path);
    assert_has(&refused(&world, &["export", "--all", path]), &[path, "already"]);
    assert_eq!(look::files(world.top()).keys().filter(|name| name.contains("all.export")).count(), 1);

    let other = beside(&world);
    assert_has(&shown(&other, &["import", path]), &["1 loop", "1 archive"]);
    assert_eq!(seen(&other), seen(&world));
    let again = refused(&other, &["import", path]);
    assert_has(&again, &[SLUG]);
    assert_eq!(seen(&other), seen(&world));
}

#[test]
fn one_loop_is_exported_and_imported_under_another_slug() {
    let (world, _client) = world_with_loop();
    let file = world.top().join("demo.export");
    let path = file.to_str().expect("UTF-8");
    assert_has(&shown(&world, &["export", SLUG, path]), &[path]);
    assert_has(
        &refused(&world, &["export", "demp", &format!("{path}2")]),
        &["loop not found: demp (nearest: demo)"],
    );
    assert!(!Path::new(&format!("{path}2")).exists());
    let said = refused(&world, &["import", path]);
    assert_has(&said, &[SLUG, "--as"]);
    assert_has(&shown(&world, &["import", path, "--as", "copy"]), &["copy"]);
    let (one, two) = (answer(&world, &["show", SLUG]), answer(&world, &["show", "copy"]));
    assert_eq!((&one["tasks"], &one["phases"]), (&two["tasks"], &two["phases"]));
    assert_ne!(one["loop"]["id"], two["loop"]["id"]);
    assert_eq!(shown(&world, &["document", "copy", "plan.md", "--rev", "1"]), "first");
    assert_has(&refused(&world, &["import", path, "--as", "copy"]), &["copy"]);
    assert_has(&refused(&world, &["import", path, "--as", "../up"]), &["asSlug", "../up"]);

    let other = beside(&world);
    shown(&other, &["import", path]);
    assert_eq!(answer(&other, &["show", SLUG])["tasks"], one["tasks"]);
    let broken = world.top().join("broken");
    let whole = std::fs::read(&file).expect("the export");
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&broken, &whole[..cut]).expect("a file");
        let empty = beside(&world);
        refused(&empty, &["import", broken.to_str().expect("UTF-8")]);
        assert_has(&shown(&empty, &["list", "--finished"]), &["no loop"]);
    }
    assert_has(&refused(&world, &["import", "/nonexistent/file"]), &["/nonexistent/file"]);
}

/// What `doctor` finds wrong, with its exit status.
#[track_caller]
fn examined(world: &World) -> (i32, Value, String) {
    let ran = run_with(world, &["doctor", "--json"], &[]);
    let report: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}{}", ran.out, ran.err));
    assert_eq!(report["ok"] == true, ran.status == 0, "{report}");
    let wrong = report["findings"].as_array().into_iter().flatten().filter(|f| f["level"] == "wrong");
    let wrong: Vec<_> = wrong.map(|f| f["what"].as_str().unwrap_or_default().to_owned()).collect();
    let in_words = run_with(world, &["doctor"], &[]);
    assert_eq!(in_words.status, ran.status);
    for what in &wrong {
        assert_has(&in_words.out, &[what]);
    }
    (ran.status, report, wrong.join("\n"))
}

#[test]
fn doctor_finds_a_healthy_loop_well() {
    let (world, client) = world_with_loop();
    let files = look::files(world.top());
    for _ in 0..2 {
        let (status, report, wrong) = examined(&world);
        assert_eq!((status, wrong.as_str()), (0, ""), "{report}");
        assert_eq!(report["database"]["journal_mode"], "wal");
        assert_eq!(report["database"]["integrity"], "ok");
        assert_eq!(report["database"]["schema_version"], report["database"]["supported_schema_version"]);
        assert_eq!(report["project"]["recognised_by"], "known root");
        assert_eq!(report["loops"]["active"], 1);
        assert_eq!(report["paths"]["state_folder"], world.state().to_str().expect("UTF-8"));
    }
    look::assert_same(&files, &look::files(world.top()), "the world");
    client.end();
    let files = look::files(world.top());
    let (status, report, _) = examined(&world);
    assert_eq!((status, &report["database"]["journal_mode"]), (0, &json!("wal")));
    look::assert_same(&files, &look::files(world.top()), "the world at rest");
}

#[test]
fn doctor_names_what_is_wrong_with_loops() {
    let (world, mut client) = world_with_loop();
    client.ok("now_set", json!({ "task": "T1", "agent": "git-loop", "step": "git-issue" }));
    client.refused("task_setStatus", json!({ "taskid": "T1", "status": "complete" }));
    std::fs::write(world.folder(SLUG).join("loop.md"), "mine").expect("a file");
    std::fs::remove_file(world.folder(SLUG).join("plan.md")).expect("removed");
    let before = look::files(world.top());
    let (status, _, wrong) = examined(&world);
    assert_eq!(status, 1);
    assert_has(
        &wrong,
        &[
            "loop demo is latched: task_setStatus on T1",
            "loop demo has a stale pointer: git-loop is at git-issue on T1",
            "loop demo: loop.md: it differs",
            "loop demo: plan.md: it is missing",
        ],
    );
    look::assert_same(&before, &look::files(world.top()), "the world");
}

#[test]
fn doctor_goes_on_without_a_database() {
    /// Prepares the world, and what is then said.
    type Setting = fn(&World);
    let cases: &[(&str, Setting, i32, &str)] = &[
        ("no state folder", |_| {}, 0, "no database yet"),
        (
            "an empty state folder",
            |world| std::fs::create_dir(world.state()).expect("a folder"),
            0,
            "no database yet",
        ),
        (
            "no database",
            |world| {
                std::fs::create_dir(world.state()).expect("a folder");
                std::fs::write(world.database(), "not a database at all, but long enough".repeat(40))
                    .expect("a file");
            },
            1,
            "is not a database",
        ),
        (
            "another program's",
            |world| {
                std::fs::create_dir(world.state()).expect("a folder");
                let db = rusqlite_open(&world.database());
                db.execute_batch("CREATE TABLE theirs (x)").expect("a table");
            },
            1,
            "another program",
        ),
        (
            "a newer one",
            |world| {
                assert!(world.client_with_loop().end().success());
                rusqlite_open(&world.database())
                    .execute_batch("PRAGMA user_version = 99")
                    .expect("a version");
            },
            1,
            "schema version 99",
        ),
        (
            "a damaged one",
            |world| {
                assert!(world.client_with_loop().end().success());
                let db = rusqlite_open(&world.database());
                db.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM loop;").expect("orphans");
            },
            1,
            "refers to one that the table loop does not have",
        ),
    ];
    for (what, prepare, expected, words) in cases {
        let world = World::new();
        prepare(&world);
        let before = look::files(world.top());
        let (status, report, _) = examined(&world);
        assert_eq!(status, *expected, "{what}: {report}");
        assert_has(&report["findings"].to_string(), &[words]);
        // The rest was looked at.
        assert_eq!(report["project"]["root"], world.project().to_str().expect("UTF-8"), "{what}");
        assert!(report["program"]["version"].is_string(), "{what}");
        look::assert_same(&before, &look::files(world.top()), what);
    }
}

fn rusqlite_open(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).expect("a database")
}

#[test]
fn doctor_goes_on_without_a_project_or_a_logic() {
    let (mut world, client) = world_with_loop();
    client.end();
    let state = look::files(&world.state());
    world.args = vec!["--logic".into(), "/nonexistent.wasm".into()];
    let (status, report, wrong) = examined(&world);
    assert_eq!(status, 1);
    assert_has(&wrong, &["/nonexistent.wasm"]);
    assert_eq!(report["loops"]["active"], 1);
    world.args = vec!["--project-root".into(), "/nonexistent".into()];
    let (status, report, wrong) = examined(&world);
    assert_eq!(status, 1);
    assert_has(&wrong, &["/nonexistent"]);
    assert_eq!(report["database"]["integrity"], "ok");
    look::assert_same(&state, &look::files(&world.state()), "the state folder");
}
