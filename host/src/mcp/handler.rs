//! What each method answers.
//!
//! The only place that knows both a [`Backend`]'s values and the wire's types;
//! it converts one into the other and decides nothing.

use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as WireTool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, json};
use tokio::sync::{Mutex, OnceCell, mpsc, oneshot};

use super::answer::the_text;
use super::message::NEWEST_WITH_INITIALIZE;
use super::worker::{Job, apart};
use super::{Backend, Fit, Identity, Options, Reply, TEXT_BYTES_MAX, lint};
use crate::cancel::Cancel;

/// How long a client may keep the identity and the list. Both are fixed for the
/// life of the process, and no longer.
const TTL_MS: u64 = 300_000;

/// Neither the identity nor the list holds anything that differs between users.
const CACHE_SCOPE: CacheScope = CacheScope::Public;

const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

pub(super) struct Handler {
    backend: Arc<dyn Backend>,
    options: Options,
    /// Held by the call whose turn it is, from before it runs until its answer
    /// is on its way: so answers keep the order of the calls. Fair, and left at
    /// once by a call that is cancelled while it waits, and by one that says that
    /// it takes long.
    jobs: Mutex<mpsc::Sender<Job>>,
    identity: OnceLock<Identity>,
    tools: OnceCell<Vec<WireTool>>,
}

impl Handler {
    pub(super) fn new(backend: Arc<dyn Backend>, options: Options, jobs: mpsc::Sender<Job>) -> Self {
        Self { backend, options, jobs: Mutex::new(jobs), identity: OnceLock::new(), tools: OnceCell::new() }
    }

    fn identity(&self) -> &Identity {
        self.identity.get_or_init(|| {
            let mut identity = self.backend.identity();
            shorten(&mut identity.instructions);
            identity
        })
    }

    async fn tools(&self) -> Result<&Vec<WireTool>, ErrorData> {
        let load = || async {
            let backend = self.backend.clone();
            let tools = apart("tool list", move || backend.tools()).await??;
            let (fit, left_out) = lint::lint(tools);
            for left_out in left_out {
                tracing::warn!("{left_out}");
            }
            let published = fit.into_iter().filter(|fit| fit.tool.profile <= self.options.profile);
            Ok(published.map(publish).collect())
        };
        self.tools.get_or_try_init(load).await.map_err(internal)
    }

    /// Returns what a result carries in its `_meta`, under the rules that the
    /// request asked for.
    fn meta(&self, context: &RequestContext<RoleServer>) -> Option<MetaObject> {
        if !speaks_for_itself(context) {
            return None;
        }
        let identity = self.identity();
        let mut meta = MetaObject(Map::new());
        meta.0.insert(
            SERVER_INFO_KEY.to_owned(),
            json!({ "name": identity.name, "version": identity.version }),
        );
        Some(meta)
    }

    /// Runs a call when its turn has come.
    async fn run(
        &self,
        request: CallToolRequestParams,
        cancel: Cancel,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let jobs = self.jobs.lock().await;
        let tool = request.name.into_owned();
        let (reply, mut result) = oneshot::channel();
        let (aside, stepped_aside) = oneshot::channel();
        let arguments = request.arguments.unwrap_or_default();
        let job = Job { tool: tool.clone(), arguments, cancel, reply, aside };
        let reply = match jobs.send(job).await {
            Ok(()) => tokio::select! {
                biased;
                reply = &mut result => reply.ok(),
                // It takes long: the others take their turns meanwhile.
                Ok(()) = stepped_aside => {
                    drop(jobs);
                    result.await.ok()
                }
            },
            Err(_) => None,
        };
        let mut result = match reply {
            Some(Reply::Done(text)) => done(text),
            Some(Reply::Refused(text)) => refused(text),
            Some(Reply::UnknownTool) => {
                let text = format!("unknown tool `{tool}`; `tools/list` names those there are");
                return Err(ErrorData::invalid_params(text, None));
            }
            // Seen only where the call stopped without the client's wish.
            Some(Reply::Cancelled) => refused(format!(
                "{tool} was stopped before it was done and nothing was changed; call it again"
            )),
            // The worker is gone, so the process is about to be.
            None => refused(format!(
                "{tool} was not run: the server is ending; start it again and call once more"
            )),
        };
        result.meta = self.meta(context);
        Ok(result.into())
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_protocol_version(NEWEST_WITH_INITIALIZE)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // What was agreed on holds from here, not what was asked for.
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(introduce(result, self.identity()))
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let config = introduce(self.get_info(), self.identity());
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, config)
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CACHE_SCOPE))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(self.tools().await?.clone());
        if speaks_for_itself(&context) {
            list = list.with_ttl_ms(TTL_MS).with_cache_scope(CACHE_SCOPE);
            list.meta = self.meta(&context);
        }
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancel = Cancel::default();
        tokio::select! {
            answer = self.run(request, cancel.clone(), &context) => answer,
            () = context.ct.cancelled() => {
                cancel.cancel();
                // Dropped on its way: nobody waits for it.
                Err(internal("cancelled".into()))
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let text = format!("unknown method `{}`", request.method);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
    }
}

/// Returns whether the request follows the rules without a handshake.
fn speaks_for_itself(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some_and(|version| version > NEWEST_WITH_INITIALIZE)
}

fn internal(text: String) -> ErrorData {
    ErrorData::internal_error(text, None)
}

fn introduce(mut config: ServerConfig, identity: &Identity) -> ServerConfig {
    config.server_info = Implementation::new(identity.name.clone(), identity.version.clone());
    config.instructions = Some(identity.instructions.clone()).filter(|text| !text.is_empty());
    config
}

fn publish(Fit { tool, schema }: Fit) -> WireTool {
    // The title goes here alone: every version reads it here, and each byte of the
    // list is paid for in a model's context.
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.read_only)
        .destructive(tool.destructive)
        .idempotent(tool.idempotent);
    WireTool::new(tool.name, tool.description, schema).with_annotations(hints)
}

fn refused(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The text as it is, and the same again for clients that show only structured content.
fn done(text: String) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(the_text());
    result
}

/// Cuts a text that clients would cut as well, where a word ends if one does.
fn shorten(text: &mut String) {
    const MARK: &str = " …";
    if text.len() <= TEXT_BYTES_MAX {
        return;
    }
    tracing::warn!(bytes = text.len(), limit = TEXT_BYTES_MAX, "the instructions are too long and were cut");
    let mut end = TEXT_BYTES_MAX - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind(char::is_whitespace).unwrap_or(end);
    text.truncate(end);
    text.push_str(MARK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_cut_at_a_word_within_the_limit() {
        let words = "word ".repeat(TEXT_BYTES_MAX / 4);
        let solid = "ä".repeat(TEXT_BYTES_MAX);
        let cases = [
            (String::new(), String::new()),
            ("short".to_owned(), "short".to_owned()),
            ("x".repeat(TEXT_BYTES_MAX), "x".repeat(TEXT_BYTES_MAX)),
            (words, format!("{} …", "word ".repeat(399).trim_end())),
            (solid, format!("{} …", "ä".repeat((TEXT_BYTES_MAX - 4) / 2))),
        ];
        for (mut text, expected) in cases {
            shorten(&mut text);
            assert_eq!(text, expected);
            assert!(text.len() <= TEXT_BYTES_MAX);
        }
    }
}
