//! A server that does nothing but shake hands: what `rmcp` alone costs.

use rmcp::{ServerHandler, ServiceExt};

struct Nothing;

impl ServerHandler for Nothing {}

fn main() {
    // Neither can fail in a way that the bench would not notice: no answer comes.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let _ = runtime.block_on(async {
        let running = Nothing.serve((tokio::io::stdin(), tokio::io::stdout())).await.ok()?;
        running.waiting().await.ok()
    });
    // A thread that still waits for input must not keep the process up.
    std::process::exit(0)
}
