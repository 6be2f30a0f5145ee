//! Where the nodes of a graph in waves are drawn, and which way its edges go.
//!
//! A wave is a column. An edge that passes a column gets a place of its own in it, so
//! that it runs beside the nodes and not behind them. Columns are ordered by the mean
//! place of their neighbours, a few times to and fro, and then set as straight as the
//! distances between neighbours allow.

/// What takes room in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// A node, by its place in the list.
    Node,
    /// An edge on its way.
    Bend,
}

/// Sizes of a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub node_width: f64,
    pub node_height: f64,
    /// Between two columns.
    pub column_gap: f64,
    /// Between two nodes of a column.
    pub row_gap: f64,
    pub margin: f64,
}

/// A graph with places for everything.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub width: f64,
    pub height: f64,
    /// The middle of each node's left side, in the order of the nodes.
    pub nodes: Vec<(f64, f64)>,
    /// The way of each edge: from the source's right side to the target's left side.
    pub edges: Vec<String>,
    /// The left side of each column.
    pub columns: Vec<f64>,
}

/// How often the order and the heights are improved.
const ROUNDS: usize = 6;

/// Beyond this many bends the edges go straight.
const BENDS: usize = 6_000;

/// The height that a passing edge takes.
const BEND_HEIGHT: f64 = 14.0;

struct Vertex {
    item: Item,
    column: usize,
    before: Vec<usize>,
    after: Vec<usize>,
    y: f64,
}

/// Draws nodes of the given waves, with edges from a node to one of a later wave.
pub(super) fn layout(waves: &[usize], edges: &[(usize, usize)], sizes: Sizes) -> Layout {
    let count = waves.iter().max().map_or(0, |last| last + 1);
    let node =
        |wave: &usize| Vertex { item: Item::Node, column: *wave, before: vec![], after: vec![], y: 0.0 };
    let mut vertices: Vec<Vertex> = waves.iter().map(node).collect();
    let passed = |&(from, to): &(usize, usize)| waves[to].saturating_sub(waves[from] + 1);
    let bends = edges.iter().map(passed).sum::<usize>() <= BENDS;
    let mut ways: Vec<Vec<usize>> = Vec::with_capacity(edges.len());
    for &(from, to) in edges {
        let mut way = vec![from];
        if bends {
            for column in waves[from] + 1..waves[to] {
                way.push(vertices.len());
                vertices.push(Vertex { item: Item::Bend, column, before: vec![], after: vec![], y: 0.0 });
            }
        }
        way.push(to);
        for pair in way.windows(2) {
            vertices[pair[0]].after.push(pair[1]);
            vertices[pair[1]].before.push(pair[0]);
        }
        ways.push(way);
    }
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (place, vertex) in vertices.iter().enumerate() {
        columns[vertex.column].push(place);
    }
    order(&mut columns, &vertices);
    set(&columns, &mut vertices, sizes);

    let step = sizes.node_width + sizes.column_gap;
    let left = |column: usize| sizes.margin + step * column as f64;
    let height = |vertex: &Vertex| vertex.y + room(vertex.item, sizes) / 2.0;
    let bottom = vertices.iter().map(height).fold(0.0, f64::max);
    let path = |way: &Vec<usize>| {
        let mut path = String::new();
        for (place, at) in way.iter().enumerate() {
            let vertex = &vertices[*at];
            let (x, y) = (left(vertex.column), vertex.y);
            let right = x + sizes.node_width;
            if place == 0 {
                path.push_str(&format!("M{right:.0} {y:.1}"));
                continue;
            }
            // Leaves and arrives level.
            let from = &vertices[way[place - 1]];
            let (start, middle) = (left(from.column) + sizes.node_width, sizes.column_gap / 2.0);
            let (a, b) = (start + middle, x - middle);
            path.push_str(&format!("C{a:.0} {:.1} {b:.0} {y:.1} {x:.0} {y:.1}", from.y));
            if vertex.item == Item::Bend {
                path.push_str(&format!("H{right:.0}"));
            }
        }
        path
    };
    Layout {
        width: if count == 0 { 0.0 } else { left(count - 1) + sizes.node_width + sizes.margin },
        height: bottom + sizes.margin,
        nodes: vertices[..waves.len()].iter().map(|vertex| (left(vertex.column), vertex.y)).collect(),
        edges: ways.iter().map(path).collect(),
        columns: (0..count).map(left).collect(),
    }
}

fn room(item: Item, sizes: Sizes) -> f64 {
    match item {
        Item::Node => sizes.node_height + sizes.row_gap,
        Item::Bend => BEND_HEIGHT,
    }
}

/// Puts each column in the order of the mean places of its neighbours.
fn order(columns: &mut [Vec<usize>], vertices: &[Vertex]) {
    let mut places = vec![0.0_f64; vertices.len()];
    let renumber = |column: &[usize], places: &mut Vec<f64>| {
        for (place, at) in column.iter().enumerate() {
            places[*at] = (place as f64 + 0.5) / column.len() as f64;
        }
    };
    columns.iter().for_each(|column| renumber(column, &mut places));
    for round in 0..ROUNDS {
        let forward = round % 2 == 0;
        for index in 0..columns.len() {
            let index = if forward { index } else { columns.len() - 1 - index };
            let column = &mut columns[index];
            let wish = |at: &usize| {
                let vertex = &vertices[*at];
                mean(if forward { &vertex.before } else { &vertex.after }, |at| places[at])
                    .unwrap_or(places[*at])
            };
            let mut wishes: Vec<(f64, usize)> = column.iter().map(|at| (wish(at), *at)).collect();
            // Stable: of equal wishes the earlier one stays before.
            wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
            *column = wishes.into_iter().map(|(_, at)| at).collect();
            renumber(column, &mut places);
        }
    }
}

/// Gives each vertex its height, in the order of its column.
fn set(columns: &[Vec<usize>], vertices: &mut [Vertex], sizes: Sizes) {
    for column in columns {
        let mut y = 0.0;
        for at in column {
            let half = room(vertices[*at].item, sizes) / 2.0;
            vertices[*at].y = y + half;
            y += 2.0 * half;
        }
    }
    for round in 0..ROUNDS {
        let forward = round % 2 == 0;
        for index in 0..columns.len() {
            let column = &columns[if forward { index } else { columns.len() - 1 - index }];
            let wish = |at: &usize| {
                let vertex = &vertices[*at];
                let near = if forward { &vertex.before } else { &vertex.after };
                mean(near, |at| vertices[at].y).unwrap_or(vertex.y)
            };
            let wishes: Vec<f64> = column.iter().map(wish).collect();
            let apart = |a: usize, b: usize| {
                (room(vertices[column[a]].item, sizes) + room(vertices[column[b]].item, sizes)) / 2.0
            };
            // Pushed down and pushed up both keep the distances, and so does their mean.
            let mut down = wishes.clone();
            for place in 1..down.len() {
                down[place] = down[place].max(down[place - 1] + apart(place - 1, place));
            }
            let mut up = wishes;
            for place in (1..up.len()).rev() {
                up[place - 1] = up[place - 1].min(up[place] - apart(place - 1, place));
            }
            for (place, at) in column.iter().enumerate() {
                vertices[*at].y = (down[place] + up[place]) / 2.0;
            }
        }
    }
    let top = |vertex: &Vertex| vertex.y - room(vertex.item, sizes) / 2.0;
    let highest = vertices.iter().map(top).fold(f64::INFINITY, f64::min);
    vertices.iter_mut().for_each(|vertex| vertex.y += sizes.margin - highest);
}

fn mean(list: &[usize], of: impl Fn(usize) -> f64) -> Option<f64> {
    if list.is_empty() {
        return None;
    }
    Some(list.iter().map(|at| of(*at)).sum::<f64>() / list.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: Sizes =
        Sizes { node_width: 100.0, node_height: 40.0, column_gap: 50.0, row_gap: 10.0, margin: 20.0 };

    #[test]
    fn a_chain_is_a_line() {
        let drawn = layout(&[0, 1, 2], &[(0, 1), (1, 2), (0, 2)], SIZES);
        assert_eq!(drawn.columns, [20.0, 170.0, 320.0]);
        assert_eq!(drawn.width, 440.0);
        assert_eq!(drawn.edges.len(), 3);
        // The long edge passes the middle column beside the node.
        assert!(drawn.edges[2].contains('H'), "{}", drawn.edges[2]);
    }

    proptest! {
        #[test]
        fn nodes_are_apart_and_inside(
            waves in proptest::collection::vec(0_usize..6, 1..40),
            pairs in proptest::collection::vec((0_usize..40, 0_usize..40), 0..80),
        ) {
            let inside = |place: usize| place < waves.len();
            let edges: Vec<_> = pairs
                .into_iter()
                .filter(|&(a, b)| inside(a) && inside(b) && waves[a] < waves[b])
                .collect();
            let drawn = layout(&waves, &edges, SIZES);
            for (a, (ax, ay)) in drawn.nodes.iter().enumerate() {
                prop_assert!(*ax >= 20.0 && ax + 100.0 <= drawn.width);
                prop_assert!(*ay - 20.0 >= 19.9 && ay + 20.0 <= drawn.height);
                for (bx, by) in &drawn.nodes[a + 1..] {
                    prop_assert!(ax != bx || (ay - by).abs() >= 49.9, "{ay} {by}");
                }
            }
        }
    }
}
