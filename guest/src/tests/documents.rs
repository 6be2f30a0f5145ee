//! Documents: revisions, headers, what is read from where.

use super::bench::{Bench, ROOT, SLUG};
use crate::model::LoopState;
use crate::tools::{FollowUp, Write};
use crate::views::{Content, ViewSet};
use serde_json::{Value, json};

fn write(b: &mut Bench, path: &str, content: &str) -> Value {
    b.ok("loop_writeFile", json!({ "path": path, "content": content }))
}

fn read(b: &mut Bench, path: &str) -> Value {
    b.ok("loop_readFile", json!({ "path": path }))
}

/// The file of a document among the views of the last call.
fn file(b: &Bench, path: &str) -> Option<(u32, String)> {
    let views: &ViewSet = b.last.as_ref()?.views.as_ref()?;
    views.views.iter().find(|v| v.path == path).and_then(|v| match &v.content {
        Content::Document(d) => Some((d.rev, d.text.clone())),
        _ => None,
    })
}

#[test]
fn a_revision_is_a_change() {
    let mut b = Bench::with_loop("standard");
    let first = write(&mut b, "plan.md", "one\n");
    assert_eq!(
        first,
        json!({
            "path": "plan.md", "rev": 1, "unchanged": false, "bytes": 4,
            "sha256": "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806", "mirror": "written",
        })
    );
    assert_eq!(file(&b, "plan.md").map(|f| f.0), Some(1));
    let again = write(&mut b, "plan.md", "one\n");
    assert_eq!((&again["rev"], &again["unchanged"]), (&json!(1), &json!(true)));
    assert!(b.last.as_ref().is_some_and(|o| o.writes.is_empty()), "an equal content stores nothing");
    assert!(file(&b, "plan.md").is_some(), "its file is brought back all the same");
    assert_eq!(write(&mut b, "plan.md", "two")["rev"], 2);
    let revision =
        |b: &mut Bench, rev: u32| b.call("loop_readFile", json!({ "path": "plan.md", "rev": rev }));
    assert_eq!(revision(&mut b, 1).expect("it is there")["content"], "one\n");
    assert_eq!(read(&mut b, "plan.md")["content"], "two");
    let refused = revision(&mut b, 3).expect_err("there is none");
    assert_eq!(refused, "plan.md has no revision 3; the newest is 2");
    assert_eq!(b.kept().events.len(), 1, "documents write no event");
    assert!(
        b.ok("loop_get", json!({}))["loop"]["updated_at"].as_str()
            > b.ok("loop_get", json!({}))["loop"]["created_at"].as_str()
    );
}

#[test]
fn the_header_is_the_servers() {
    let mut b = Bench::with_loop("standard");
    write(&mut b, "tasks/T1.md", "# T1\n");
    let (_, text) = file(&b, "tasks/T1.md").expect("a file");
    assert!(text.starts_with("---\ntype: task\nloop: demo\ntaskid: T1\ngenerated: "), "{text}");
    assert!(text.ends_with("\nmcp: 1.2.3\n---\n# T1\n"), "{text}");
    let reply = read(&mut b, "tasks/T1.md");
    assert_eq!(reply["frontmatter"]["taskid"], "T1");
    assert_eq!(reply["content"], "# T1\n");
    // Sent back as it stood on disk, once or twice over: still the same document.
    for sent in [text.clone(), text.replacen("---\n", "\u{feff}---\n", 1), text.clone() + "x"] {
        let unchanged = !sent.ends_with('x');
        assert_eq!(write(&mut b, "tasks/T1.md", &sent)["unchanged"], unchanged, "{sent}");
    }
    let doubled = text.replace("# T1\n", &text);
    write(&mut b, "tasks/T1.md", &doubled);
    assert_eq!(read(&mut b, "tasks/T1.md")["content"], "# T1\n");
}

/// Whatever the content is, it comes back byte for byte, three times in a row.
#[test]
fn contents_come_back_as_they_were() {
    let mut b = Bench::with_loop("standard");
    for (i, body) in [
        "",
        " ",
        "no newline",
        "\n",
        "---",
        "---\nstatus: done\nphase: qa\n---\n",
        "---\ntype: plan",
        "a\n---\nb\n...\n",
        "\u{feff}bom",
        "a\r\nb\rc\n",
        "\0\u{1b}[2J",
        "---\ntype: [1]\nloop: x\n---\n",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("d{i}.md");
        for rev in [1, 2, 3] {
            let reply = write(&mut b, &path, body);
            assert_eq!((&reply["rev"], &reply["unchanged"]), (&json!(1), &json!(rev > 1)), "{body:?}");
            assert_eq!(read(&mut b, &path)["content"], body, "{body:?}");
        }
    }
}

#[test]
fn a_long_document_comes_in_parts() {
    let mut b = Bench::with_loop("standard");
    let content: String = (0..5_000).map(|i| format!("line {i} \"é\"\t\u{1}\n")).collect();
    write(&mut b, "plan.md", &content);
    let mut read = String::new();
    loop {
        let reply = b.ok("loop_readFile", json!({ "path": "plan.md", "offset": read.chars().count() }));
        let length = b.last.as_ref().map_or(0, |o| o.reply.chars().count());
        assert!(length <= 40_000, "{length}");
        read.push_str(reply["content"].as_str().expect("text"));
        let left = content.chars().count() - read.chars().count();
        assert_eq!(reply["more"].as_u64().unwrap_or(0), left as u64);
        if left == 0 {
            break;
        }
        assert!(length > 39_000, "{length}");
    }
    assert_eq!(read, content);
}

#[test]
fn what_predates_the_database_is_read_from_disk() {
    let mut b = Bench::with_loop("standard");
    b.texts.insert("old.md".to_owned(), "---\ntype: document\nloop: demo\nmcp: 0.1.0\n---\nbody".to_owned());
    let reply = read(&mut b, "old.md");
    assert_eq!(
        (&reply["source"], &reply["rev"], &reply["content"]),
        (&json!("disk"), &Value::Null, &json!("body"))
    );
    assert_eq!(reply["frontmatter"]["mcp"], "0.1.0");
    let view = read(&mut b, "loop.md");
    assert_eq!((&view["source"], &view["frontmatter"]["type"]), (&json!("disk"), &json!("loop")));
    write(&mut b, "plan.md", "x");
    let refused = b.refused("loop_readFile", json!({ "path": "plam.md" }));
    assert!(refused.contains("(nearest: plan.md)"), "{refused}");
}

#[test]
fn paths_are_held_to_their_rules() {
    let mut b = Bench::with_loop("standard");
    write(&mut b, "Notes.md", "x");
    for (path, why) in [
        ("../x", "`..` is no name"),
        ("/etc/passwd", "it is absolute"),
        ("loop.md", "that file is a view"),
        ("notes.md", "differs from Notes.md by case alone"),
        ("Notes.md/x", "Notes.md is a document"),
        ("a\\b", "holds \\\\, which"),
    ] {
        let refused = b.refused("loop_writeFile", json!({ "path": path, "content": "x" }));
        assert!(refused.contains(why), "{path}: {refused}");
    }
    let big = "x".repeat((5 << 20) + 1);
    let refused = b.refused("loop_writeFile", json!({ "path": "big.md", "content": big }));
    assert!(refused.contains("5242881 bytes long and at most 5242880"), "{refused}");
}

#[test]
fn materialising_is_left_to_the_host() {
    let mut b = Bench::with_loop("standard");
    b.ok("loop_materialize", json!({}));
    let id = b.state().loop_.id.clone();
    assert_eq!(b.last.as_ref().and_then(|o| o.follow_up.clone()), Some(FollowUp::Materialize(id)));
}

/// The loop of another root of the project.
fn other_root(root: &str, there: bool) -> (LoopState, bool) {
    let mut state = Bench::with_loop("standard").state().clone();
    state.loop_.project_root = root.to_owned();
    state.loop_.id = format!("id of {root}");
    (state, there)
}

#[test]
fn a_loop_whose_root_is_gone_still_answers() {
    let mut b = Bench::new();
    b.elsewhere = vec![other_root("/gone", false), other_root("/there", true)];
    let reply = b.ok("loop_get", json!({}));
    assert_eq!((&reply["detached"], &reply["project_root"]), (&json!(true), &json!("/gone")));
    let reply = b.ok("loop_init", json!({ "goal": "try it" }));
    assert_eq!(
        (&reply["reused"], &reply["detached"], &reply["id"]),
        (&json!(true), &json!(true), &json!("id of /gone"))
    );
    for tool in ["loop_render", "loop_materialize"] {
        let refused = b.refused(tool, json!({}));
        assert!(refused.contains("its project root /gone is gone"), "{refused}");
    }
    // A change is stored, and the answer says that no file shows it.
    let decided = b.outcome_without_applying("loop_setPhase", json!({ "phase": "plan" }));
    assert!(decided.views.is_none());
    assert!(decided.writes.iter().any(|w| matches!(w, Write::AppendEvent(_))));
    let reply: Value = serde_json::from_str(&decided.reply).expect("JSON");
    assert_eq!(reply["mirror"], "not written: the loop's project root is gone");

    b.elsewhere.push(other_root("/lost", false));
    let refused = b.refused("loop_get", json!({}));
    assert!(refused.contains("several loops whose project roots are gone: /gone, /lost"), "{refused}");

    b.elsewhere = vec![other_root("/there", true)];
    let refused = b.refused("loop_get", json!({}));
    assert!(refused.starts_with("loop not found: demo; this project has one in /there"), "{refused}");
    // A new one of the same slug may begin here.
    assert_eq!(b.ok("loop_init", json!({ "goal": "mine" }))["reused"], Value::Null);
    assert_eq!((b.state().loop_.slug.as_str(), b.state().loop_.project_root.as_str()), (SLUG, ROOT));
}
