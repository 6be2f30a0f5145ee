//! A logic whose tools each fail in one way.

#[cfg(not(feature = "wasi"))]
#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "loop-state:logic/logic",
    });
}

/// The parts of WASI that are enough to look outside.
#[cfg(feature = "wasi")]
#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "test:faulty/faulty",
        inline: "
            package test:faulty;

            package wasi:io@0.2.0 {
                interface error { resource error; }
                interface poll { resource pollable { block: func(); } }
                interface streams {
                    use error.{error};
                    variant stream-error { last-operation-failed(error), closed }
                    resource output-stream {
                        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
                    }
                }
            }
            package wasi:cli@0.2.0 {
                interface stderr {
                    use wasi:io/streams@0.2.0.{output-stream};
                    get-stderr: func() -> output-stream;
                }
            }
            package wasi:clocks@0.2.0 {
                interface monotonic-clock {
                    use wasi:io/poll@0.2.0.{pollable};
                    subscribe-duration: func(when: u64) -> pollable;
                }
                interface wall-clock {
                    record datetime { seconds: u64, nanoseconds: u32 }
                    now: func() -> datetime;
                }
            }
            package wasi:random@0.2.0 {
                interface random { get-random-u64: func() -> u64; }
            }

            world faulty {
                include loop-state:logic/logic@0.1.0;
                import wasi:cli/stderr@0.2.0;
                import wasi:clocks/monotonic-clock@0.2.0;
                import wasi:clocks/wall-clock@0.2.0;
                import wasi:random/random@0.2.0;
            }
        ",
        generate_all,
    });
}

#[cfg(not(feature = "wasi"))]
#[allow(dead_code, reason = "the half that reads is for the host")]
#[path = "../../../../guest/src/panic.rs"]
mod panic;

#[cfg(feature = "wasi")]
mod panic {
    use crate::bindings::wasi::cli::stderr::get_stderr;

    /// Sends a panic's text to standard error, as the standard library does
    /// where it has one.
    pub fn install() {
        std::panic::set_hook(Box::new(|panic| {
            let text = format!("\nthread 'main' {panic}\n");
            let _ = get_stderr().blocking_write_and_flush(text.as_bytes());
        }));
    }
}

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use bindings::exports::loop_state::logic::{model, tools, views};

/// The tools that are published; those of the other world answer as well.
const TOOLS: &[&str] = &["ok", "count", "panic", "index", "spin", "bomb", "recurse"];

fn tool(name: &str) -> tools::Tool {
    tools::Tool {
        name: name.to_owned(),
        title: name.to_owned(),
        description: "Answers, or fails in one way".to_owned(),
        input_schema: r#"{"type":"object","properties":{}}"#.to_owned(),
        profile: tools::Profile::Core,
        read_only: true,
        destructive: false,
        idempotent: true,
    }
}

struct Faulty;

/// Who this is; a test puts in [`SILENT`], which is as long.
static NAME: &str = "faulty";

/// The name of one that does not answer who it is.
const SILENT: &[u8] = b"silent";

/// The calls that this instance has counted.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl tools::Guest for Faulty {
    fn about() -> tools::Identity {
        panic::install();
        let name = black_box(NAME);
        assert!(name.as_bytes() != SILENT, "this logic does not say who it is");
        tools::Identity { name: name.to_owned(), version: "0".to_owned(), instructions: String::new() }
    }

    fn tools() -> Vec<tools::Tool> {
        TOOLS.iter().map(|name| tool(name)).collect()
    }

    fn decide(call: tools::Call, _: tools::Facts) -> tools::Decision {
        panic::install();
        let reply = match call.tool.as_str() {
            "ok" => "{}".to_owned(),
            "count" => CALLS.fetch_add(1, Ordering::Relaxed).to_string(),
            "panic" => panic!("this tool always panics: {}", call.arguments),
            "index" => [1, 2, 3][black_box(7)].to_string(),
            "spin" => loop {
                black_box(());
            },
            "bomb" => {
                let mut kept = Vec::new();
                loop {
                    kept.push(black_box(vec![1_u8; 1 << 20]));
                }
            }
            "recurse" => depth(black_box(u64::MAX)).to_string(),
            #[cfg(feature = "wasi")]
            "outside" => {
                use bindings::wasi::{clocks::wall_clock, random::random};
                let now = wall_clock::now();
                let number = random::get_random_u64();
                format!("{}.{} {number}", now.seconds, now.nanoseconds)
            }
            #[cfg(feature = "wasi")]
            "wait" => {
                let hour = 3_600_000_000_000;
                bindings::wasi::clocks::monotonic_clock::subscribe_duration(hour).block();
                "{}".to_owned()
            }
            other => unimplemented_tool(other),
        };
        let (writes, views, follow_up) = (Vec::new(), None, None);
        tools::Decision::Done(tools::Outcome { reply, refused: false, writes, views, follow_up })
    }
}

impl views::Guest for Faulty {
    fn render(state: model::LoopState, _: Vec<model::Memory>, _: String) -> views::ViewSet {
        views::ViewSet {
            loop_id: state.loop_.id,
            slug: state.loop_.slug,
            project_root: state.loop_.project_root,
            revision: state.loop_.marks.revision,
            views: Vec::new(),
        }
    }

    fn log_lines(events: Vec<model::Event>) -> String {
        events.iter().map(|event| format!("{}\n", event.seq)).collect()
    }

    fn stamp(_: String, _: model::DocumentHead, content: String, _: String) -> String {
        content
    }

    fn strip(text: String) -> views::Stripped {
        views::Stripped { header: Vec::new(), body: text }
    }
}

fn unimplemented_tool(name: &str) -> String {
    format!("unknown tool `{name}`")
}

/// Nests that deep; what it adds up keeps the compiler from making it a loop.
#[inline(never)]
fn depth(left: u64) -> u64 {
    let frame = black_box([left; 16]);
    if left == 0 {
        return 0;
    }
    depth(left - 1) + black_box(frame)[3]
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, missing_docs)]
mod export {
    use super::{Faulty, bindings};
    bindings::export!(Faulty with_types_in bindings);
}
