//! The servers that others built for the same or the nearest use, each with its write
//! that comes nearest to moving one task of twenty.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use loop_state_tests::packages::{LOOPSMITH, NODE, Package};
use loop_state_tests::{World, binary};
use serde_json::{Value, json};

use crate::speaker::Speaker;

/// The tasks, entities or notes that each server holds.
const TASKS: usize = 20;

/// A server, and what it is asked to do.
pub struct Peer {
    pub name: &'static str,
    /// What it is, unless it is the one that is measured.
    pub package: Option<Package>,
    /// What its write is called in the table.
    pub what: &'static str,
    /// The program below its package, and its arguments.
    program: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    /// Files that it expects in the project.
    prepare: fn(&Path),
    /// Brings it to the point where all calls below pass; what it answers is handed to them.
    fill: fn(&mut Speaker) -> Result<Value, String>,
    /// The `n`th write; with each one the state goes to the other one of two.
    write: fn(usize, &Value) -> (&'static str, Value),
    /// Reads what was written.
    read: fn(&Value) -> (&'static str, Value),
    /// What the text read holds after the `n`th write, and not after the one before.
    shows: fn(usize) -> &'static str,
}

impl Peer {
    /// Its command in a world.
    pub fn command(&self, folder: &Path, node: &Path, world: &World) -> Command {
        let Some(package) = self.package else { return world.command() };
        let mut command = match package.registry {
            "npm" => {
                let mut command = Command::new(node);
                command.arg(folder.join("node_modules/.bin").join(self.program[0]));
                command
            }
            _ => Command::new(folder.join("bin").join(self.program[0])),
        };
        let mut path = node.parent().unwrap_or(node).as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.args(&self.program[1..]).current_dir(world.project()).env_clear();
        command.env("PATH", path).env("HOME", world.home());
        for (name, value) in self.variables {
            command.env(name, value.replace("{project}", &world.project().to_string_lossy()));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Where its program lies, and how it is run.
    pub fn installed(&self) -> Result<(std::path::PathBuf, std::path::PathBuf), String> {
        let node = NODE.installed()?.join("node_modules/.bin/node").canonicalize();
        let node = node.map_err(|error| format!("node: {error}"))?;
        match self.package {
            Some(package) => Ok((package.installed()?, node)),
            None => Ok((binary(), node)),
        }
    }

    /// The name with the version.
    pub fn title(&self) -> String {
        match self.package {
            Some(package) => format!("{} {}", self.name, package.version),
            None => self.name.to_owned(),
        }
    }

    /// A new world with the files that it expects.
    pub fn world(&self) -> World {
        let world = World::new();
        (self.prepare)(&world.project());
        world
    }

    /// Starts it where it was before.
    pub fn start(
        &self,
        place: &(std::path::PathBuf, std::path::PathBuf),
        world: &World,
    ) -> Result<Speaker, String> {
        Speaker::start(self.command(&place.0, &place.1, world))
    }

    /// Makes its tasks.
    pub fn fill(&self, speaker: &mut Speaker) -> Result<Value, String> {
        (self.fill)(speaker)
    }

    /// The `n`th write.
    pub fn write(&self, n: usize, filled: &Value) -> (&'static str, Value) {
        (self.write)(n, filled)
    }

    /// Whether the state after the `n`th write is there.
    pub fn shows(&self, speaker: &mut Speaker, n: usize, filled: &Value) -> Result<bool, String> {
        Ok(speaker.call((self.read)(filled))?.contains((self.shows)(n)))
    }
}

/// Of two, the one of the `n`th write.
fn of<T: Copy>(two: [T; 2], n: usize) -> T {
    two[n % 2]
}

/// The measured server first.
pub const PEERS: [Peer; 6] = [
    Peer {
        name: "loop-state-mcp",
        package: None,
        what: "task_setStatus",
        program: &[],
        variables: &[],
        prepare: |_| {},
        fill: |speaker| {
            speaker.call(("loop_init", json!({ "loopSlug": "demo", "goal": "try it" })))?;
            let tasks: Vec<_> =
                (1..=TASKS).map(|n| json!({ "taskid": format!("T{n}"), "title": title(n) })).collect();
            speaker.call(("tasks_derive", json!({ "loopSlug": "demo", "tasks": tasks })))?;
            for status in ["issue-open", "in-progress"] {
                speaker.call((
                    "task_setStatus",
                    json!({ "loopSlug": "demo", "taskid": "T1", "status": status }),
                ))?;
            }
            Ok(Value::Null)
        },
        write: |n, _| {
            let status = of(crate::STATUSES, n);
            ("task_setStatus", json!({ "loopSlug": "demo", "taskid": "T1", "status": status }))
        },
        read: |_| ("loop_get", json!({ "loopSlug": "demo" })),
        shows: |n| of(["\"status\":\"blocked\"", "\"status\":\"in-progress\""], n),
    },
    Peer {
        name: "loopsmith",
        package: Some(LOOPSMITH),
        what: "loopsmith_scratchpad",
        program: &["loopsmith", "mcp"],
        variables: &[],
        prepare: |_| {},
        fill: |speaker| {
            for n in 1..=TASKS {
                speaker.call((
                    "loopsmith_scratchpad",
                    json!({ "run_id": "r", "key": format!("T{n}"), "value": title(n) }),
                ))?;
            }
            Ok(Value::Null)
        },
        write: |n, _| {
            let value = of(["blocked", "in progress"], n);
            ("loopsmith_scratchpad", json!({ "run_id": "r", "key": "T1", "value": value }))
        },
        read: |_| ("loopsmith_scratchpad", json!({ "run_id": "r", "key": "T1" })),
        shows: |n| of(["blocked", "in progress"], n),
    },
    Peer {
        name: "server-memory",
        package: Some(Package {
            registry: "npm",
            name: "@modelcontextprotocol/server-memory",
            version: "2026.8.31",
        }),
        what: "add or delete an observation",
        program: &["mcp-server-memory"],
        variables: &[("MEMORY_FILE_PATH", "{project}/memory.jsonl")],
        prepare: |_| {},
        fill: |speaker| {
            let entity =
                |n| json!({ "name": format!("T{n}"), "entityType": "task", "observations": [title(n)] });
            let entities: Vec<_> = (1..=TASKS).map(entity).collect();
            speaker.call(("create_entities", json!({ "entities": entities }))).map(|_| Value::Null)
        },
        write: |n, _| {
            if n % 2 == 0 {
                (
                    "add_observations",
                    json!({ "observations": [{ "entityName": "T1", "contents": ["is blocked"] }] }),
                )
            } else {
                (
                    "delete_observations",
                    json!({ "deletions": [{ "entityName": "T1", "observations": ["is blocked"] }] }),
                )
            }
        },
        read: |_| ("open_nodes", json!({ "names": ["T1"] })),
        // After a deletion there is one observation only.
        shows: |n| of(["is blocked", "sign-in\"\n"], n),
    },
    Peer {
        name: "backlog.md",
        package: Some(Package { registry: "npm", name: "backlog.md", version: "1.52.0" }),
        what: "task_edit, status",
        program: &["backlog", "mcp", "start"],
        variables: &[],
        // Without git, which it would ask at each write.
        prepare: |project| {
            let config = "project_name: \"bench\"\ndefault_status: \"To Do\"\nstatuses: [\"To Do\", \"In Progress\", \"Done\"]\n\
                          labels: []\ndate_format: yyyy-mm-dd\nauto_open_browser: false\nremote_operations: false\n\
                          auto_commit: false\nfilesystem_only: true\ncheck_active_branches: false\ntask_prefix: \"task\"\n";
            fs::create_dir(project.join("backlog")).expect("a new folder");
            fs::write(project.join("backlog/config.yml"), config).expect("a new file");
        },
        fill: |speaker| {
            for n in 1..=TASKS {
                speaker.call(("task_create", json!({ "title": title(n) })))?;
            }
            Ok(Value::Null)
        },
        write: |n, _| ("task_edit", json!({ "id": "task-1", "status": of(["In Progress", "To Do"], n) })),
        read: |_| ("task_view", json!({ "id": "task-1" })),
        shows: |n| of(["In Progress", "To Do"], n),
    },
    Peer {
        name: "task-master-ai",
        package: Some(Package { registry: "npm", name: "task-master-ai", version: "0.43.1" }),
        what: "set_task_status",
        program: &["task-master-mcp"],
        variables: &[],
        // Its tools make tasks with a model only; the file is what they would make.
        prepare: |project| {
            let task = |n| {
                json!({ "id": n, "title": title(n), "description": "", "status": "pending", "dependencies": [],
                        "priority": "medium", "details": "", "testStrategy": "", "subtasks": [] })
            };
            let tasks: Vec<_> = (1..=TASKS).map(task).collect();
            let folder = project.join(".taskmaster");
            fs::create_dir_all(folder.join("tasks")).expect("a new folder");
            let files = [
                (
                    "tasks/tasks.json",
                    json!({ "master": { "tasks": tasks, "metadata": { "description": "bench" } } }),
                ),
                ("config.json", json!({ "models": {}, "global": { "logLevel": "error" } })),
                (
                    "state.json",
                    json!({ "currentTag": "master", "branchTagMapping": {}, "migrationNoticeShown": true }),
                ),
            ];
            for (name, value) in files {
                fs::write(folder.join(name), format!("{value:#}")).expect("a new file");
            }
        },
        fill: |speaker| {
            let cwd = fs::read_link(format!("/proc/{}/cwd", speaker.pid()));
            let cwd = cwd.map_err(|error| format!("its working directory: {error}"))?;
            Ok(json!(cwd))
        },
        write: |n, project| {
            let status = of(["in-progress", "pending"], n);
            ("set_task_status", json!({ "id": "1", "status": status, "projectRoot": project }))
        },
        read: |project| ("get_task", json!({ "id": "1", "projectRoot": project })),
        shows: |n| of(["in-progress", "pending"], n),
    },
    Peer {
        name: "mcp-shrimp-task-manager",
        package: Some(Package { registry: "npm", name: "mcp-shrimp-task-manager", version: "1.0.21" }),
        what: "update_task, description",
        program: &["mcp-shrimp-task-manager"],
        variables: &[("DATA_DIR", "{project}/data")],
        prepare: |_| {},
        fill: |speaker| {
            for n in 1..=TASKS {
                let task = json!([{ "name": format!("T{n}"), "description": title(n), "dependencies": [],
                                    "implementationGuide": "write it and test it" }]);
                let arguments = json!({ "updateMode": "append", "globalAnalysisResult": "none", "tasksRaw": task.to_string() });
                speaker.call(("split_tasks", arguments))?;
            }
            let listed = speaker.call(("list_tasks", json!({ "status": "all" })))?;
            let id = listed.split("**ID:** `").nth(1).and_then(|rest| rest.split('`').next());
            id.map(|id| json!(id)).ok_or_else(|| "list_tasks: no task".to_owned())
        },
        write: |n, id| {
            let description = of(["It waits for the sign-in page.", "It is worked on since today."], n);
            ("update_task", json!({ "taskId": id, "description": description }))
        },
        read: |id| ("get_task_detail", json!({ "taskId": id })),
        shows: |n| of(["It waits for", "It is worked on"], n),
    },
];

fn title(n: usize) -> String {
    format!("Part {n} of the sign-in")
}
