//! Bar charts as SVG: groups of bars, a bar for each series, and a mark at each group's goal.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Pixels; of the width, the legend has its part.
const SIZE: (u32, u32) = (960, 400);
const LEGEND: u32 = 210;
const TEXT: (&str, u32) = ("sans-serif", 13);
const TITLE: (&str, u32) = ("sans-serif", 16);
/// From one line of text to the next.
const LINE: i32 = 18;

/// Pairs of a hue, each told apart without red and green.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0x1b, 0x5e, 0x9b),
    RGBColor(0x86, 0xb9, 0xe2),
    RGBColor(0xc9, 0x6f, 0x00),
    RGBColor(0xf3, 0xba, 0x6c),
    RGBColor(0x6f, 0x2f, 0x83),
    RGBColor(0xc2, 0x9a, 0xd0),
    RGBColor(0x44, 0x44, 0x44),
    RGBColor(0xa8, 0xa8, 0xa8),
    RGBColor(0x00, 0x72, 0x68),
    RGBColor(0x76, 0xc2, 0xba),
];
const GOAL: RGBColor = RGBColor(0xb0, 0x1e, 0x2e);

/// The part of a group's width that its bars take.
const FILLED: f64 = 0.8;

/// A chart.
pub(super) struct Chart {
    pub(super) title: String,
    /// What the height of a bar is.
    pub(super) axis: String,
    pub(super) series: Vec<String>,
    pub(super) groups: Vec<Group>,
}

/// Bars that stand together.
pub(super) struct Group {
    pub(super) label: String,
    /// One for each series.
    pub(super) bars: Vec<Option<f64>>,
    /// Where they should be.
    pub(super) goal: Option<f64>,
}

impl Chart {
    /// Draws it into a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let told = |error| anyhow!("cannot draw {}: {error}", path.display());
        self.draw(path).map_err(told)
    }

    fn draw(&self, path: &Path) -> Result<(), Error> {
        let root = SVGBackend::new(path, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (left, right) = root.split_horizontally(SIZE.0 - LEGEND);
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, TITLE)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..self.groups.len() as f64, 0.0..self.top())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_desc(&self.axis)
            .y_label_formatter(&|value| short(*value))
            .label_style(TEXT)
            .axis_desc_style(TEXT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.15))
            .draw()?;
        for series in 0..self.series.len() {
            let bars = self.bars(series);
            chart.draw_series(bars.map(|bar| Rectangle::new(bar, colour(series).filled())))?;
        }
        let goals = self.goals();
        chart.draw_series(goals.map(|line| PathElement::new(line, GOAL.stroke_width(2))))?;
        for (number, group) in self.groups.iter().enumerate() {
            let place = chart.backend_coord(&(number as f64 + 0.5, 0.0));
            name(&left, &group.label, place)?;
        }
        self.legend(&right)?;
        root.present()
    }

    /// What the colours mean.
    fn legend(&self, area: &Area<'_>) -> Result<(), Error> {
        let style = TextStyle::from(TEXT.into_font()).pos(Pos::new(HPos::Left, VPos::Center));
        let mut y = 3 * LINE;
        for (number, series) in self.series.iter().enumerate() {
            let swatch = [(0, y - 5), (10, y + 5)];
            area.draw(&Rectangle::new(swatch, colour(number).filled()))?;
            area.draw_text(series, &style, (18, y))?;
            y += LINE;
        }
        if self.groups.iter().any(|group| group.goal.is_some()) {
            let line = [(0, y), (10, y)];
            area.draw(&PathElement::new(line, GOAL.stroke_width(2)))?;
            area.draw_text("goal", &style, (18, y))?;
        }
        Ok(())
    }

    /// The corners of one series' bars.
    fn bars(&self, series: usize) -> impl Iterator<Item = [(f64, f64); 2]> {
        let width = FILLED / self.series.len() as f64;
        let left = (1.0 - FILLED) / 2.0 + width * series as f64;
        self.groups
            .iter()
            .enumerate()
            .filter_map(move |(number, group)| {
                let height = group.bars.get(series).copied().flatten()?;
                let from = number as f64 + left;
                Some([(from, 0.0), (from + width * 0.94, height)])
            })
    }

    /// A line over each group that has a goal.
    fn goals(&self) -> impl Iterator<Item = [(f64, f64); 2]> {
        let margin = (1.0 - FILLED) / 4.0;
        self.groups
            .iter()
            .enumerate()
            .filter_map(move |(number, group)| {
                let (number, goal) = (number as f64, group.goal?);
                Some([(number + margin, goal), (number + 1.0 - margin, goal)])
            })
    }

    /// A little above the highest bar, or goal.
    fn top(&self) -> f64 {
        let heights = self.groups.iter().flat_map(|group| {
            let bars = group.bars.iter().copied().flatten();
            bars.chain(group.goal).filter(|height| height.is_finite())
        });
        heights.fold(f64::MIN_POSITIVE, f64::max) * 1.05
    }
}

fn colour(series: usize) -> RGBColor {
    COLOURS[series % COLOURS.len()]
}

/// Writes a label in the middle below the axis, on two lines if it has two parts.
fn name(area: &Area<'_>, label: &str, (x, y): (i32, i32)) -> Result<(), Error> {
    let style = TextStyle::from(TEXT.into_font()).pos(Pos::new(HPos::Center, VPos::Top));
    for (line, part) in (0..).zip(label.split('-')) {
        area.draw_text(part, &style, (x, y + 6 + line * (LINE - 3)))?;
    }
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Error = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

/// As few digits as tell two lines of the grid apart.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let group = |label: &str, bars: [Option<f64>; 2], goal| Group {
            label: label.to_owned(),
            bars: bars.to_vec(),
            goal,
        };
        Chart {
            title: "A < B".to_owned(),
            axis: "times".to_owned(),
            series: vec!["one".to_owned(), "two".to_owned()],
            groups: vec![
                group("create", [Some(4.0), Some(2.0)], Some(10.0)),
                group("stat", [None, Some(7.5)], None),
            ],
        }
    }

    #[test]
    fn a_bar_is_as_high_as_its_value_and_stands_in_its_group() {
        let chart = chart();
        let second: Vec<_> = chart.bars(1).collect();
        assert_eq!((second[0][1].1, second[1][1].1), (2.0, 7.5));
        assert!(second[0][0].0 > 0.49 && second[0][1].0 < 1.0, "{second:?}");
        assert!(second[1][0].0 > 1.49 && second[1][1].0 < 2.0, "{second:?}");
        assert_eq!(chart.bars(0).count(), 1, "what was not measured has no bar");
        assert_eq!(chart.goals().count(), 1);
        assert!(chart.top() > 10.0);
    }

    #[test]
    fn a_chart_is_an_image_with_all_its_words() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("chart.svg");
        chart().save(&path).expect("drawn");
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        for word in ["A &lt; B", "times", "one", "two", "goal", "create", "stat"] {
            assert!(text.contains(word), "{word} is missing in {text}");
        }
        let again = folder.path().join("again.svg");
        chart().save(&again).expect("drawn");
        assert_eq!(text, std::fs::read_to_string(again).expect("written"));
        assert!(chart().save(Path::new("/nonexistent/x.svg")).is_err());
    }

    #[test]
    fn numbers_on_the_axis_are_short() {
        assert_eq!(
            [0.0, 0.25, 10.0, 7.5].map(short),
            ["0", "0.25", "10", "7.5"]
        );
    }
}
