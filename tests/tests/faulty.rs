//! A logic that fails takes its call with it, and nothing else.

use loop_state_test_components::FAULTY;
use loop_state_tests::{Client, World};
use serde_json::json;

#[test]
fn a_failing_logic_is_a_tool_failure_and_the_next_call_works() {
    let mut world = World::new();
    world.take_logic(FAULTY);
    let mut client: Client = world.client();
    for (tool, says) in [
        ("panic", "this tool always panics"),
        ("index", "index out of bounds"),
        ("bomb", "memory"),
        ("recurse", "too deeply"),
        ("spin", "10 s"),
    ] {
        let failure = client.refused(tool, json!({}));
        assert!(failure.contains(says), "{tool}: {failure}");
        assert!(failure.contains("nothing was changed"), "{tool}: {failure}");
        assert_eq!(client.ok("ok", json!({})), json!({}), "after {tool}");
    }
}

/// A call that never ends is stopped when its client loses interest.
#[test]
fn a_cancelled_call_stops_and_the_next_one_works() {
    let mut world = World::new();
    world.take_logic(FAULTY);
    let mut client = world.client();
    let message = client.message("spin", json!({}));
    client.send(&message);
    let cancelled = json!({ "requestId": message["id"], "reason": "test" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    let before = std::time::Instant::now();
    assert_eq!(client.ok("ok", json!({})), json!({}));
    assert!(
        before.elapsed() < std::time::Duration::from_secs(5),
        "the call went on for {:?}",
        before.elapsed()
    );
}
