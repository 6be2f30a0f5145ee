//! A time axis that leaves out the pauses.
//!
//! Loops rest for nights and weekends. Drawn to scale the work would be a few hairlines,
//! so a pause that is long beside the work takes a fixed room.

use super::figures::moment;

/// The most pauses that are shortened: the longest ones.
const PAUSES: usize = 10;

/// A pause is long from this share of the work on.
const LONG: f64 = 0.05;

/// A stretch of time and where it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub from: i64,
    pub to: i64,
    pub left: f64,
    pub right: f64,
    /// Nothing went on, and it is drawn shorter than it was.
    pub pause: bool,
}

/// Where moments are drawn.
#[derive(Debug, Default)]
pub(crate) struct Axis {
    pub stretches: Vec<Stretch>,
}

impl Axis {
    /// An axis from `left` to `right` for what went on in these spans of time, with
    /// `room` for each pause.
    pub fn new(mut spans: Vec<(i64, i64)>, left: f64, right: f64, room: f64) -> Axis {
        spans.retain(|(from, to)| from <= to);
        spans.sort_unstable();
        let (Some(first), Some(last)) = (spans.first().map(|s| s.0), spans.iter().map(|s| s.1).max()) else {
            return Axis::default();
        };
        let mut gaps: Vec<(i64, i64)> = Vec::new();
        let mut end = first;
        for (from, to) in spans {
            if from > end {
                gaps.push((end, from));
            }
            end = end.max(to);
        }
        let length = |(from, to): &(i64, i64)| to.saturating_sub(*from);
        let idle: i64 = gaps.iter().map(length).fold(0, i64::saturating_add);
        let work = (last.saturating_sub(first).saturating_sub(idle)).max(1) as f64;
        gaps.retain(|gap| length(gap) as f64 > work * LONG);
        gaps.sort_by_key(|gap| std::cmp::Reverse(length(gap)));
        gaps.truncate(PAUSES);
        gaps.sort_unstable();
        let pauses: i64 = gaps.iter().map(length).fold(0, i64::saturating_add);
        let shown = last.saturating_sub(first).saturating_sub(pauses).max(1) as f64;
        let scale = (right - left - room * gaps.len() as f64).max(1.0) / shown;
        let mut stretches = Vec::new();
        let (mut at, mut x) = (first, left);
        let mut push = |from: i64, to: i64, wide: f64, pause: bool| {
            stretches.push(Stretch { from, to, left: x, right: x + wide, pause });
            x += wide;
        };
        for (from, to) in gaps {
            push(at, from, length(&(at, from)) as f64 * scale, false);
            push(from, to, room, true);
            at = to;
        }
        push(at, last, length(&(at, last)) as f64 * scale, false);
        Axis { stretches }
    }

    /// Where a moment is drawn.
    pub fn x(&self, at: i64) -> f64 {
        let found = self.stretches.iter().find(|stretch| at <= stretch.to).or(self.stretches.last());
        let Some(stretch) = found else { return 0.0 };
        let length = stretch.to.saturating_sub(stretch.from).max(1) as f64;
        let share = (at.saturating_sub(stretch.from) as f64 / length).clamp(0.0, 1.0);
        stretch.left + (stretch.right - stretch.left) * share
    }

    /// The shortened pauses.
    pub fn pauses(&self) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().filter(|stretch| stretch.pause)
    }

    /// Places and labels of marks, at least `apart` from each other: the begin of each
    /// stretch of work, and round times inside it. A label names the day where it is
    /// another one than that of the label before.
    pub fn marks(&self, apart: f64) -> Vec<(f64, String)> {
        const STEPS: [i64; 14] =
            [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];
        let mut marks: Vec<(f64, String)> = Vec::new();
        let mut day = String::new();
        let mut add = |x: f64, at: i64, seconds: bool| {
            if marks.last().is_some_and(|(last, _)| x - last < apart) {
                return;
            }
            let text = moment(at);
            let (date, time) = text.split_once(' ').unwrap_or((&text, ""));
            let time = if seconds {
                format!("{time}:{:02}", at.rem_euclid(60_000) / 1_000)
            } else {
                time.to_owned()
            };
            let label = if date == day { time } else { format!("{} {time}", date.get(5..).unwrap_or(date)) };
            day = date.to_owned();
            marks.push((x, label));
        };
        for stretch in self.stretches.iter().filter(|stretch| !stretch.pause) {
            let length = stretch.to.saturating_sub(stretch.from).max(1);
            let per_mark = length as f64 * apart / (stretch.right - stretch.left).max(1.0);
            let days = |step: i64| step * 1_000;
            let step = STEPS.iter().copied().map(days).find(|step| *step as f64 >= per_mark);
            let step = step
                .unwrap_or_else(|| ((per_mark / 86_400_000.0).ceil() as i64).saturating_mul(86_400_000))
                .max(1_000);
            let seconds = step < 60_000;
            add(stretch.left, stretch.from, seconds);
            let mut at = stretch.from.div_euclid(step).saturating_add(1).saturating_mul(step);
            while at < stretch.to {
                add(self.x(at), at, seconds);
                at = at.saturating_add(step);
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_night_takes_little_room() {
        let axis = Axis::new(vec![(0, HOUR), (14 * HOUR, 15 * HOUR)], 100.0, 1_126.0, 26.0);
        assert_eq!(axis.x(0), 100.0);
        assert_eq!(axis.x(HOUR), 600.0);
        assert_eq!(axis.x(14 * HOUR), 626.0);
        assert_eq!(axis.x(15 * HOUR), 1_126.0);
        assert_eq!(axis.pauses().count(), 1);
        let marks = axis.marks(120.0);
        assert_eq!(marks[0], (100.0, "01-01 00:00".to_owned()));
        assert!(marks.iter().any(|(_, label)| label == "14:30"), "{marks:?}");
        assert_eq!(Axis::new(vec![], 0.0, 10.0, 1.0).x(5), 0.0);
    }

    proptest! {
        #[test]
        fn moments_keep_their_order(
            spans in proptest::collection::vec((any::<i32>(), 0..100_000_000_i64), 1..40),
            wild in any::<i64>(),
        ) {
            let mut spans: Vec<_> = spans.into_iter().map(|(a, l)| (i64::from(a) * 100, i64::from(a) * 100 + l)).collect();
            let axis = Axis::new(spans.clone(), 0.0, 900.0, 26.0);
            spans.sort_unstable();
            let mut last = 0.0;
            for (from, _) in &spans {
                let x = axis.x(*from);
                prop_assert!(x >= last - 1e-6 && x <= 900.0 + 1e-6, "{x}");
                last = x;
            }
            let marks = axis.marks(90.0);
            prop_assert!(!marks.is_empty() && marks.len() <= 11);
            prop_assert!(marks.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 90.0));
            // Times that no clock tells do no harm.
            Axis::new(vec![(wild, i64::MAX), (i64::MIN, wild)], 0.0, 900.0, 26.0).marks(90.0);
        }
    }
}
