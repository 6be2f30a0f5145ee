//! The goals of a loop: what was ruled on each, and what a failed one lacks.

use super::text::inline;
use crate::model::LoopState;
use std::fmt::Write;

/// The configuration that is bound, then one list item a target that was ruled on.
pub fn section(out: &mut String, state: &LoopState) {
    let l = &state.loop_;
    out.push_str("bound to ");
    inline(out, l.goal_config.as_deref().unwrap_or_default());
    if let Some(sha256) = &l.goal_config_sha256 {
        out.push_str(", sha256 ");
        inline(out, sha256);
    }
    out.push_str("\n\n");
    if state.goals.is_empty() {
        out.push_str("no ruling yet\n");
        return;
    }
    for goal in &state.goals {
        out.push_str(if goal.satisfied { "- [x] " } else { "- [ ] " });
        inline(out, &goal.target);
        let stands = if goal.satisfied { "satisfied" } else { "not satisfied" };
        let _ = write!(
            out,
            ": {stands}, {} of {} checks passed, ruling {}",
            goal.passed, goal.total, goal.iteration
        );
        // A ruling under another text says nothing about this one.
        if l.goal_config_sha256.as_ref() != Some(&goal.config_sha256) {
            out.push_str(", made under another configuration");
        }
        if !goal.satisfied {
            out.push_str(" — ");
            inline(out, &goal.reason);
        }
        out.push('\n');
    }
}
