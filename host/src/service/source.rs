//! What the mirror asks beyond the views of a call: the store read, the logic
//! rendering.
//!
//! Each answer has its own short transaction; the call's own has ended by then.
//! A call that was cancelled after its commit still brings its folder up to date.

use crate::cancel::Cancel;
use crate::contract::{model, views};
use crate::logic::Logic;
use crate::mirror::{Source, SourceError};
use crate::store::Store;

use super::VERSION;

/// Events that are rendered at once: bounds what a component holds, whatever the
/// length of the history.
const PAGE: usize = 1_000;

/// And how long their texts may be together, in bytes, the last one aside.
const PAGE_BYTES: usize = 1 << 20;

/// The views of one loop as they are now.
pub struct Rendered<'a> {
    pub store: &'a mut Store,
    pub logic: &'a Logic,
    pub loop_id: &'a str,
}

impl Source for Rendered<'_> {
    fn marks(&mut self) -> Result<Option<model::Marks>, SourceError> {
        Ok(self.store.read()?.marks(self.loop_id)?)
    }

    fn log_lines(&mut self, after: u64) -> Result<Option<(String, u64)>, SourceError> {
        let events = self.store.read()?.events_after(self.loop_id, after, PAGE, PAGE_BYTES)?;
        let Some(last) = events.last() else { return Ok(None) };
        let lines = self.logic.session(&Cancel::default())?.log_lines(&events)?;
        Ok(Some((lines, last.seq)))
    }

    fn document_rev(&mut self, path: &str) -> Result<Option<u32>, SourceError> {
        Ok(self.store.read()?.document_rev(self.loop_id, path)?)
    }

    fn render_all(&mut self) -> Result<views::ViewSet, SourceError> {
        let tx = self.store.read()?;
        let state = tx.loop_state_by_id(self.loop_id)?;
        let state = state.ok_or_else(|| format!("loop {} is no longer stored", self.loop_id))?;
        let memories = tx.memories(self.loop_id)?;
        drop(tx);
        Ok(self.logic.session(&Cancel::default())?.render(&state, &memories, VERSION)?)
    }
}
