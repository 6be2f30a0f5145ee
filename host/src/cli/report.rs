//! Reports: written to a file as a whole, or to standard output.

use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::report::{BOUNDS_OF_REPORT, loop_page, overview_page};
use crate::service::Service;

use super::answer::Answer;
use super::page::{Page, size};
use super::{Refused, documents};

/// The most loops of an overview.
const LOOPS: u32 = 1_000;

/// Draws a loop, or all loops of the project.
pub fn run(service: &Service, of: Option<&str>, out: Option<&Path>) -> Result<Answer, Refused> {
    let out = out.filter(|path| *path != Path::new("-"));
    if out.is_none() && io::stdout().is_terminal() {
        return Err(Refused::misuse(
            "a report is a page for a browser: name a file with --out FILE, or hand it on with a pipe",
        ));
    }
    let page = draw(service, of)?;
    let Some(path) = out else {
        return Ok(Answer::bytes(json!({ "html": page }), page.into_bytes()));
    };
    write(path, page.as_bytes()).map_err(|cause| {
        Refused::from(format!("cannot write {}: {cause}; nothing was changed", path.display()))
    })?;
    let answer = json!({ "file": path.display().to_string(), "bytes": page.len(), "loop": of });
    let what = of.map_or("the project's loops".to_owned(), |of| format!("loop {of}"));
    let line = format!("Wrote the report of {what} to {} ({}).", path.display(), size(&answer["bytes"]));
    Ok(Answer::page(answer, Page::of(line)))
}

fn draw(service: &Service, of: Option<&str>) -> Result<String, String> {
    let Some(of) = of else {
        return Ok(overview_page(&service.overview(LOOPS).map_err(|refusal| refusal.to_string())?));
    };
    let id = documents::loop_id(service, of)?;
    let records = service.loop_records(&id, &BOUNDS_OF_REPORT).map_err(|refusal| refusal.to_string())?;
    let records =
        records.ok_or_else(|| format!("the loop {of} is gone: of deleted loops only documents stay"))?;
    Ok(loop_page(&records))
}

/// Writes a file so that its name always leads to a whole one.
///
/// A link is followed, so that it stays one; pipes and devices are written to as they are.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let to = match fs::metadata(path) {
        Ok(there) if there.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder; name a file in it"));
        }
        Ok(there) if !there.is_file() => return File::options().write(true).open(path)?.write_all(bytes),
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    // As any new file: others may read it where the user's mask allows it.
    let mode = fs::metadata(&to).map_or(0o666, |there| there.permissions().mode() & 0o777);
    let mut file = tempfile::Builder::new()
        .prefix(".report-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(&folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&to).map_err(|error| error.error)?;
    Ok(())
}
