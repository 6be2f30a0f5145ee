//! Whether all is well, section by section.

use serde_json::{Map, Value, json};

use crate::service::{Finding, Section, Service};

use super::answer::Answer;
use super::page::{Page, cell, size};
use super::tools::{arguments, ask, ask_for_list, entries};

/// Looks at everything and changes nothing. `trouble` is what is wrong with the logic
/// that was asked for, in whose place the built-in one answers.
pub fn doctor(service: &Service, trouble: Option<String>) -> Answer {
    let (mut sections, opened) = service.examine();
    if let (Some(trouble), Some(program)) = (trouble, sections.first_mut()) {
        program.wrong(
            trouble,
            "name another file with --logic, or leave the option out; the rest was looked at with the built-in logic",
        );
    }
    if opened {
        sections.push(loops(service));
    }
    answer(&sections)
}

/// The active loops of this project: latches, stale pointers, files that differ.
fn loops(service: &Service) -> Section {
    let mut section = Section::new("loops");
    let others = match look_at_any(service, &mut section) {
        Ok(others) => others,
        Err(why) => {
            section.wrong(why, "see the sections above");
            return section;
        }
    };
    let Some(others) = others else { return section };
    let listed = ask_for_list(service, "loop_list", arguments(json!({ "limit": u32::MAX })), "loops");
    let listed = match listed {
        Ok(listed) => listed,
        Err(why) => {
            section.wrong(why, "see the sections above");
            return section;
        }
    };
    section.fact("active", entries(&listed, "loops").count());
    for row in entries(&listed, "loops") {
        let slug = cell(&row["slug"]);
        if others.contains(&slug) {
            continue;
        }
        let root = row["project_root"].as_str();
        match root {
            Some(root) if row["detached"] == true => section.wrong(
                format!("loop {slug}: its project root {root} is gone"),
                "bring the folder back; documents and timeline still answer",
            ),
            // A slug means the loop of this root first.
            Some(_) => continue,
            None => {}
        }
        match ask(service, "loop_recover", arguments(json!({ "loopSlug": slug, "eventLimit": 0 }))) {
            Ok(answer) => examine(service, &slug, &answer, &mut section),
            Err(why) => section.wrong(format!("loop {slug}: {why}"), "see the sections above"),
        }
    }
    section
}

/// The slugs here that belong to other logics; `None` where the logic has no tools to
/// look at loops with, and their files alone were looked at.
fn look_at_any(service: &Service, section: &mut Section) -> Result<Option<Vec<String>>, String> {
    let others = service.slugs_of_others().map_err(|refusal| refusal.to_string())?;
    let offers = |tool| service.offers(tool).map_err(|error| error.to_string());
    if offers("loop_list")? && offers("loop_recover")? {
        return Ok(Some(others));
    }
    let here = service.loops_here(false).map_err(|refusal| refusal.to_string())?;
    section.fact("active", here.loops.len());
    let own = here.loops.iter().filter(|found| Some(found.project_root.as_str()) == service.root());
    for found in own.filter(|found| !others.contains(&found.slug)) {
        let state = service.loop_here(&found.slug).map_err(|refusal| refusal.to_string())?;
        compare(service, &found.slug, &state.loop_.id, section);
    }
    Ok(None)
}

fn examine(service: &Service, slug: &str, answer: &Value, section: &mut Section) {
    let (row, now) = (&answer["loop"], &answer["now"]);
    if let Some(tool) = row["blocked_op"].as_str() {
        let task = cell(&row["blocked_task"]);
        section.wrong(
            format!("loop {slug} is latched: {tool} on {task} was refused: {}", cell(&row["blocked_reason"])),
            format!(
                "make the corrective call on {task}, or decide and have it recorded with loop_clearBlock"
            ),
        );
    }
    if now["stale"] == true {
        let on = now["task"].as_str().map(|task| format!(" on {task}")).unwrap_or_default();
        section.wrong(
            format!(
                "loop {slug} has a stale pointer: {} is at {}{on} since {} and has not reported back",
                cell(&now["agent"]),
                cell(&now["step"]),
                cell(&now["since"])
            ),
            "if no session is at it, look at what it left behind before the step is repeated",
        );
    }
    compare(service, slug, &cell(&row["id"]), section);
}

/// Holds a loop's files against the database.
fn compare(service: &Service, slug: &str, id: &str, section: &mut Section) {
    match service.differences(id) {
        Ok(Some(found)) => {
            for difference in found {
                section.wrong(
                    format!("loop {slug}: {}: {}", difference.path, difference.why),
                    "loop_render writes the views anew, loop_materialize the documents that are missing",
                );
            }
        }
        // Told as a loop without a root.
        Ok(None) => {}
        Err(refusal) => {
            section.wrong(format!("loop {slug}: {refusal}"), "its files were not compared");
        }
    }
}

fn answer(sections: &[Section]) -> Answer {
    let well = !sections.iter().flat_map(|section| &section.findings).any(|finding| finding.wrong);
    let mut json = Map::from_iter([("ok".to_owned(), Value::from(well))]);
    let mut findings = Vec::new();
    let mut page = Page::default();
    for Section { name, facts, findings: found } in sections {
        json.insert((*name).to_owned(), Value::Object(facts.clone()));
        let state = match found.iter().any(|finding| finding.wrong) {
            true => "wrong",
            false => "ok",
        };
        let known = facts.iter().filter(|(_, value)| !value.is_null());
        page = page.line(format!("{name}: {state}")).fields(known.map(|(name, value)| {
            let shown = if name.ends_with("bytes") { size(value) } else { cell(value) };
            (format!("  {name}"), shown)
        }));
        for Finding { wrong, what, next } in found {
            let mark = if *wrong { "wrong" } else { "note" };
            page = page.fields([(format!("  {mark}:"), format!("{what}. Next: {next}."))]);
            let level = if *wrong { "wrong" } else { "note" };
            findings.push(json!({ "section": name, "level": level, "what": what, "next": next }));
        }
    }
    json.insert("findings".to_owned(), findings.into());
    let page = page.line(if well { "All is well." } else { "Something is wrong, see above." });
    Answer::page(Value::Object(json), page).well(well)
}
