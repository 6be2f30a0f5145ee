//! Random records out of one number.

use super::{PROJECT, ROOT};
use crate::contract::model;

/// Texts that break what is careless with them.
const HOSTILE: [&str; 12] = [
    "",
    " ",
    "plain",
    "a\0b",
    "\0",
    "🦀 e\u{301} \u{202e}",
    "'; DROP TABLE loop; --",
    "[]",
    "line\r\nline\u{2028}",
    "NULL",
    "\"quoted\" \\",
    "%_?1:x@y$z",
];

/// Splitmix64: the same number gives the same records.
pub(super) struct Sample(u64);

impl Sample {
    pub(super) fn new(seed: u64) -> Self {
        Sample(seed)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    fn text(&mut self) -> String {
        match self.below(40) {
            0 => "long 🦀\0".repeat(10_000),
            n => HOSTILE[usize::try_from(n).unwrap() % HOSTILE.len()].to_owned(),
        }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.below(2) == 0 { None } else { Some(make(self)) }
    }

    fn some_text(&mut self) -> Option<String> {
        self.maybe(Self::text)
    }

    pub(super) fn texts(&mut self) -> Vec<String> {
        (0..self.below(4)).map(|_| self.text()).collect()
    }

    fn time(&mut self) -> i64 {
        match self.below(8) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => i64::try_from(self.below(1 << 42)).unwrap(),
        }
    }

    fn some_time(&mut self) -> Option<i64> {
        self.maybe(Self::time)
    }

    /// Any count that the database can hold.
    fn count(&mut self) -> u64 {
        self.number() >> (1 + self.below(62))
    }

    fn small(&mut self) -> u32 {
        match self.below(8) {
            0 => u32::MAX,
            _ => u32::try_from(self.below(1000)).unwrap(),
        }
    }

    pub(super) fn a_loop(&mut self) -> model::Loop {
        model::Loop {
            id: format!("id-{}", self.number()),
            slug: format!("slug-{}", self.number()),
            title: self.text(),
            goal: self.text(),
            mode: self.text(),
            status: self.text(),
            phase: self.text(),
            project_id: PROJECT.into(),
            project_root: ROOT.into(),
            project_key: self.some_text(),
            default_branch: self.some_text(),
            branch_mode: self.some_text(),
            feature_branch: self.some_text(),
            legal: self.some_text(),
            memory_harvest: self.some_text(),
            docs_sync: self.some_text(),
            deferred_gate: self.some_text(),
            qa_report: self.some_text(),
            f_unresolved_pr: self.maybe(Self::small),
            f_security_deferred: self.maybe(Self::small),
            total_failed_gates: self.small(),
            splits_done: self.small(),
            qa_rounds: self.small(),
            awaiting_user: self.some_text(),
            blocked: self.maybe(|s| model::Block { op: s.text(), task: s.text(), reason: s.text() }),
            now: self.maybe(|s| model::NowPointer {
                task: s.some_text(),
                agent: s.text(),
                step: s.text(),
                since: s.time(),
            }),
            goal_config: self.some_text(),
            goal_config_sha256: self.some_text(),
            mcp_version: self.some_text(),
            created_at: self.time(),
            updated_at: self.time(),
            finished_at: self.some_time(),
            pruned_at: self.some_time(),
            marks: model::Marks {
                revision: self.count(),
                event_seq: self.count(),
                log_bytes: self.count(),
                step_seq: self.count(),
                memory_seq: self.count(),
                memory_bytes: self.count(),
            },
            quality: model::StepQuality {
                explicit: self.small(),
                auto_next: self.small(),
                auto_complete: self.small(),
                auto_finish: self.small(),
                missing_returns: self.small(),
                orphan_returns: self.small(),
                duplicate_returns: self.small(),
                backfilled: self.small(),
                clock_corrections: self.small(),
            },
        }
    }

    pub(super) fn phase(&mut self, phase: &str) -> model::Phase {
        model::Phase { phase: phase.into(), status: self.text(), updated_at: self.time() }
    }

    pub(super) fn task(&mut self, taskid: String, position: u32) -> model::Task {
        model::Task {
            taskid,
            position,
            title: self.text(),
            description: self.some_text(),
            kind: self.some_text(),
            tech: self.some_text(),
            status: self.text(),
            depends_on: self.texts(),
            issue: self.some_text(),
            pr: self.some_text(),
            branch: self.some_text(),
            last_evidence: self.some_text(),
            retries: self.small(),
            security_rounds: self.small(),
            review_rounds: self.small(),
            superseded_by: self.texts(),
            created_at: self.time(),
            updated_at: self.time(),
            completed_at: self.some_time(),
        }
    }

    pub(super) fn event(&mut self, seq: u64) -> model::Event {
        model::Event {
            seq,
            at: self.time(),
            event: self.text(),
            phase: self.some_text(),
            task: self.some_text(),
            from: self.some_text(),
            to: self.some_text(),
            agent: self.some_text(),
            note: self.some_text(),
            evidence: self.some_text(),
            issue: self.some_text(),
            pr: self.some_text(),
            branch: self.some_text(),
        }
    }

    pub(super) fn step(&mut self, seq: u64) -> model::Step {
        model::Step {
            seq,
            task: self.some_text(),
            phase: self.text(),
            agent: self.text(),
            step: self.text(),
            attempt: self.small(),
            started_at: self.time(),
            agent_returned_at: self.some_time(),
            outcome: self.some_text(),
            ended_at: self.some_time(),
            ended_by: self.some_text(),
            source: self.text(),
        }
    }

    pub(super) fn total(&mut self, task: Option<&str>, phase: &str) -> model::StepTotal {
        model::StepTotal {
            task: task.map(str::to_owned),
            phase: phase.into(),
            opened: self.small(),
            closed: self.small(),
            wall_ms: self.count(),
            agent_ms: self.count(),
            orchestrator_ms: self.count(),
            unattributed_ms: self.count(),
            first_started_at: self.time(),
        }
    }

    pub(super) fn memory(&mut self, seq: u64) -> model::Memory {
        model::Memory { seq, at: self.time(), agent: self.text(), task: self.some_text(), note: self.text() }
    }
}
