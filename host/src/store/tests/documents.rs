//! What grows: revisions of documents, events and steps, and what is dropped of them.

use super::archive::{ask, document, put};
use super::sample::Sample;
use super::*;
use crate::store::BlobFault;
use tools::{Answer, Query, Write};

#[test]
fn documents_are_added_and_read() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        create(tx, &a_loop(1));
        for (path, rev, content) in
            [("b.md", 1, "one"), ("b.md", 2, "zwei"), ("Z.md", 1, ""), ("a.md", 1, "a")]
        {
            put(tx, "loop-1", document(path, rev, content)).unwrap();
        }
    });
    let Answer::Documents(heads) = ask(&mut store, Query::Documents("loop-1".into())) else { panic!() };
    let named: Vec<_> = heads.iter().map(|head| (head.path.as_str(), head.rev, head.bytes)).collect();
    assert_eq!(named, [("Z.md", 1, 0), ("a.md", 1, 1), ("b.md", 2, 4)]);
    assert_eq!((heads[2].created_at, heads[2].updated_at), (1, 2));
    let mut read =
        |path: &str, rev| match ask(&mut store, Query::Document(("loop-1".into(), path.into(), rev))) {
            Answer::Document(found) => found.map(|found| (found.content, found.head.rev)),
            other => panic!("another query's answer: {other:?}"),
        };
    assert_eq!(read("b.md", None), Some(("zwei".into(), 2)));
    assert_eq!(read("b.md", Some(1)), Some(("one".into(), 1)));
    assert_eq!(read("b.md", Some(3)), None);
    assert_eq!(read("B.md", None), None);

    let refused: [(model::Document, &[&str]); 4] = [
        (document("b.md", 2, "x"), &["revision 2", "b.md"]),
        (document("B.md", 3, "x"), &["B.md", "b.md", "case"]),
        (model::Document { content: "y".into(), ..document("c.md", 1, "x") }, &["c.md", "length or digest"]),
        (model::Document { content: "xx".into(), ..document("c.md", 1, "x") }, &["c.md", "length or digest"]),
    ];
    for (document, words) in refused {
        says(&put(&store.write().unwrap(), "loop-1", document).unwrap_err(), words);
    }
    says(&put(&store.write().unwrap(), "nobody", document("a", 1, "")).unwrap_err(), &["no loop"]);

    store.db.execute_batch("UPDATE loop_document SET sha256 = 'x' WHERE path = 'a.md'").unwrap();
    let tx = store.read().unwrap();
    let error =
        tx.answer(PROJECT, ROOT, &Query::Document(("loop-1".into(), "a.md".into(), None))).unwrap_err();
    assert!(matches!(error, StoreError::DamagedContent { fault: BlobFault::Digest, .. }));
    says(&error, &["revision 1", "a.md", "loop-1"]);
    let faults = tx.content_check().unwrap();
    assert!(faults.len() == 1 && faults[0].contains("a.md"), "{faults:?}");
}

#[test]
fn history_is_dropped_and_numbers_go_on() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        for (n, finished_at) in [(1, Some(10)), (2, Some(5)), (3, Some(20)), (4, None)] {
            create(tx, &model::Loop { finished_at, pruned_at: None, ..a_loop(n) });
            let id = || format!("loop-{n}");
            tx.apply(&[
                Write::AppendEvent((id(), Sample::new(n).event(1))),
                Write::PutStep((id(), Sample::new(n).step(1))),
                Write::PutStep((id(), Sample::new(n).step(2))),
            ])
            .unwrap();
        }
    });
    let Answer::Prunable(found) = ask(&mut store, Query::Prunable(20)) else { panic!() };
    let found: Vec<_> = found.iter().map(|c| (c.id.as_str(), c.finished_at, c.events, c.steps)).collect();
    assert_eq!(found, [("loop-2", 5, 1, 2), ("loop-1", 10, 1, 2)]);
    write(&mut store, |tx| tx.apply(&[Write::DropHistory(("loop-2".into(), 99))]).unwrap());
    let Answer::Prunable(found) = ask(&mut store, Query::Prunable(20)) else { panic!() };
    assert_eq!(found.len(), 1);
    let tx = store.read().unwrap();
    assert_eq!(tx.loop_state_by_id("loop-2").unwrap().unwrap().loop_.pruned_at, Some(99));
    assert!(tx.events_after("loop-2", 0, 9, 9).unwrap().is_empty());
    assert_eq!(tx.events_after("loop-1", 0, 9, usize::MAX).unwrap().len(), 1);
}

#[test]
fn a_page_of_events_ends_by_bytes_and_has_one_at_least() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        create(tx, &a_loop(1));
        for seq in 1..=9 {
            let event = model::Event { note: Some("x".repeat(1_000)), ..Sample::new(3).event(seq) };
            tx.apply(&[Write::AppendEvent(("loop-1".into(), event))]).unwrap();
        }
    });
    let tx = store.read().unwrap();
    let page = |after, limit, bytes| {
        let events = tx.events_after("loop-1", after, limit, bytes).unwrap();
        events.iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 9, 1), [1]);
    assert_eq!(page(3, 9, 1_001).first(), Some(&4));
    assert!((2..9).contains(&page(0, 9, 2_500).len()));
    assert_eq!(page(0, 2, usize::MAX), [1, 2]);
    assert_eq!(page(9, 2, 1), [0; 0]);
}
