//! A graph of many nodes, as a configuration in JSON and in YAML.

use serde_json::{Value, json};

/// The nodes of the graph.
pub const NODES: usize = 1_000;

/// The names of the two files, and what they hold.
pub fn files() -> [(&'static str, String); 2] {
    let nodes: Vec<_> = (0..NODES)
        .map(|n| {
            let on: Vec<_> = [n / 2, n / 3].iter().filter(|on| **on < n).map(|on| format!("n{on}")).collect();
            json!({ "id": format!("n{n}"), "role": "builder", "instruction": "build it", "depends_on": on, "weight": 1 + n % 5 })
        })
        .map(|mut node| {
            if let Some(on) = node["depends_on"].as_array_mut() {
                on.dedup();
            }
            node
        })
        .collect();
    let graph = json!({ "name": "bench", "execution": { "graph": { "nodes": nodes } } });
    let mut yaml = "name: bench\nexecution:\n  graph:\n    nodes:\n".to_owned();
    for node in graph["execution"]["graph"]["nodes"].as_array().expect("a list") {
        let on: Vec<_> =
            node["depends_on"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        yaml.push_str(&format!(
            "      - {{id: {}, role: builder, instruction: build it, depends_on: [{}], weight: {}}}\n",
            node["id"].as_str().expect("text"),
            on.join(", "),
            node["weight"]
        ));
    }
    [("graph.json", graph.to_string()), ("graph.yaml", yaml)]
}
