//! The identity that a remote's URL gives to a repository, whatever its spelling.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use percent_encoding::percent_decode_str;

/// The URL schemes that reach a repository over a network.
const SCHEMES: [&str; 8] = ["ssh", "git+ssh", "ssh+git", "git", "https", "http", "ftps", "ftp"];

/// Hosts that serve the same repositories as another one.
const HOST_ALIASES: [(&str, &str); 6] = [
    ("ssh.github.com", "github.com"),
    ("www.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("www.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
    ("www.bitbucket.org", "bitbucket.org"),
];

/// Where Azure's repositories are, whichever of its hosts a URL names.
const AZURE: &str = "dev.azure.com";

/// The ending of Azure's older hosts, one for each organisation.
const AZURE_OLD: &str = ".visualstudio.com";

/// Azure's hosts for ssh, the present and the older one.
const AZURE_SSH: [&str; 2] = ["ssh.dev.azure.com", "vs-ssh.visualstudio.com"];

/// The longest URL that is looked at, in bytes.
const URL_MAX: usize = 4096;

/// Returns the identity of the repository that a remote's URL names, the same for
/// each way to write it: host and path, as in `github.com/acme/app`.
///
/// | in the URL | in the key |
/// |---|---|
/// | scheme: `ssh`, `git+ssh`, `ssh+git`, `git`, `https`, `http`, `ftps`, `ftp`; or `host:path` as ssh has it | dropped |
/// | user name, password, token | dropped; no key where an `@` follows the path's beginning, since that may lie within a password |
/// | port | dropped, so two servers on one host that differ by port alone are one |
/// | `host:2222/acme/app`, which has no scheme | for git, and so here, 2222 is a folder |
/// | case | folded, in the path too |
/// | `%20` and the like | decoded, but for `%2F` |
/// | one `.git` at the end, repeated and last slashes, `?…`, `#…` | dropped |
/// | `~me` | kept |
/// | `ssh.` and `www.` of GitHub, `altssh.` and `www.` of GitLab and Bitbucket | the site's own host |
/// | another alias, of ssh or of `insteadOf` | a host of its own: nothing is looked up |
/// | Azure's `dev.azure.com/O/P/_git/R`, `dev.azure.com/O/_git/R`, `ssh.dev.azure.com:v3/O/P/R`, `O.visualstudio.com/P/_git/R`, `vs-ssh.visualstudio.com:v3/O/P/R` | `dev.azure.com/o/p/r`, where a `P` that is left out is `R` |
/// | Bitbucket Data Center's `https://host/scm/P/R` | `host/p/r`, as its ssh URL has it; not where the host is called `gitlab`, whose groups nest |
///
/// There is no key for what is known on one machine alone: a path, a drive, `file:`,
/// a loopback address. Nor for a URL without a path, with `..` in it, with a scheme
/// that is not listed, or for a helper's `name::address`.
pub fn remote_key(url: &str) -> Option<String> {
    let url = url.trim();
    if url.len() > URL_MAX || url.contains(char::is_control) {
        return None;
    }
    let Spelling { host, path, web } = split(url)?;
    let host = host_name(host)?;
    let parts = path_parts(path)?;
    let (host, mut parts) = azure(host, parts)?;
    if web && parts.len() == 3 && parts.first().is_some_and(|part| part == "scm") && !is_gitlab(&host) {
        parts.remove(0);
    }
    (!parts.is_empty()).then(|| format!("{host}/{}", parts.join("/")))
}

/// The parts of a URL that say which repository it is, as they were written.
struct Spelling<'a> {
    host: &'a str,
    path: &'a str,
    /// Whether it is for HTTP.
    web: bool,
}

fn split(url: &str) -> Option<Spelling<'_>> {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let scheme = SCHEMES.into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
            let (authority, path) = rest.split_once('/')?;
            if authority.contains(['?', '#']) || path.contains('@') {
                return None;
            }
            let path = path.split(['?', '#']).next()?;
            let address = after_user(authority);
            let (host, port) = match address.strip_prefix('[').and_then(|inner| inner.find(']')) {
                // One for the bracket that was taken off, one to stand behind the other.
                Some(end) => address.split_at_checked(end + 2)?,
                None => address.split_at(address.find(':').unwrap_or(address.len())),
            };
            // What stands there and is no port may be the beginning of a password
            // with a slash in it.
            let digits = if port.is_empty() { port } else { port.strip_prefix(':')? };
            let is_port = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_port.then_some(Spelling { host, path, web: scheme.starts_with("http") })
        }
        None => {
            let (host, path) = split_scp(url)?;
            // `https:/host/path` and the like, with a slash lost.
            let lost = |scheme: &str| host.eq_ignore_ascii_case(scheme);
            if SCHEMES.into_iter().any(lost) || lost("file") {
                return None;
            }
            Some(Spelling { host, path, web: false })
        }
    }
}

/// Splits `user@host:path`, as git does: the colon stands before any slash, or the
/// whole is a local path. Brackets hold an IPv6 address, or a host with a port.
fn split_scp(url: &str) -> Option<(&str, &str)> {
    let opening = if url.starts_with('[') { Some(0) } else { url.find("@[").map(|at| at + 1) };
    let first_slash = url.find('/').unwrap_or(url.len());
    if let Some(opening) = opening.filter(|opening| *opening < first_slash) {
        let closing = opening + url.get(opening..)?.find(']')?;
        let path = url.get(closing + 1..)?.strip_prefix(':')?;
        let inner = after_user(url.get(opening + 1..closing)?);
        return match inner.split_once(':') {
            Some((host, port)) if !port.contains(':') => Some((host, path)),
            _ => Some((url.get(opening..=closing)?, path)),
        };
    }
    let (address, path) = url.split_once(':')?;
    // `helper::address` is for a program of its own to understand.
    (!address.contains('/') && !path.starts_with(':')).then(|| (after_user(address), path))
}

fn after_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The host in its one spelling, unless it is this machine, a drive, or no name.
fn host_name(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        let local = address.is_loopback() || address.is_unspecified();
        return (!local).then(|| format!("[{address}]"));
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
    let is_name = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))
        && host.starts_with(char::is_alphanumeric);
    let is_drive = host.len() == 1;
    let is_local = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse().is_ok_and(|ip: Ipv4Addr| IpAddr::V4(ip).is_loopback() || ip.is_unspecified());
    if !is_name || is_drive || is_local {
        return None;
    }
    let alias = HOST_ALIASES.into_iter().find(|(alias, _)| host == *alias);
    Some(alias.map_or(host, |(_, own)| own.to_owned()))
}

/// The path's parts in their one spelling, without the last one's `.git`.
fn path_parts(path: &str) -> Option<Vec<String>> {
    if path.contains(['@', '\\']) {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        let decoded = percent_decode_str(part).decode_utf8().unwrap_or(Cow::Borrowed(part));
        let decoded = if decoded.contains('/') { part } else { &decoded };
        match decoded {
            "" | "." => {}
            ".." => return None,
            _ if decoded.contains(char::is_control) => return None,
            _ => parts.push(decoded.to_lowercase()),
        }
    }
    let last = parts.pop()?;
    if last == ".git" {
        // A work tree's own folder, which is the repository that the tree is of.
        return (parts.len() > 1).then_some(parts);
    }
    parts.push(last.strip_suffix(".git").unwrap_or(&last).to_owned());
    Some(parts)
}

/// Brings Azure's spellings to one, and leaves all others as they are. `None` when
/// the organisation cannot be told.
fn azure(host: String, parts: Vec<String>) -> Option<(String, Vec<String>)> {
    let is_ssh = AZURE_SSH.contains(&host.as_str());
    let organisation = host.strip_suffix(AZURE_OLD).filter(|_| !is_ssh).map(str::to_owned);
    if !is_ssh && organisation.is_none() && host != AZURE {
        return Some((host, parts));
    }
    let mut rest = parts.into_iter().peekable();
    let organisation = match organisation {
        Some(organisation) => {
            rest.next_if(|part| part == "defaultcollection");
            organisation
        }
        None => {
            if is_ssh && rest.next()? != "v3" {
                return None;
            }
            rest.next()?
        }
    };
    let mut rest: Vec<String> = rest.collect();
    if let Some(marker) = rest.iter().position(|part| part == "_git" || part == "_ssh") {
        let repository = rest.last().filter(|_| marker + 1 < rest.len())?.clone();
        rest.truncate(marker);
        if rest.is_empty() {
            rest.push(repository.clone());
        }
        rest.push(repository);
    }
    rest.insert(0, organisation);
    Some((AZURE.to_owned(), rest))
}

fn is_gitlab(host: &str) -> bool {
    host.split('.').any(|label| label == "gitlab")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_vector() {
        let text = include_str!("../../../tests/vectors/remote-keys.json");
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        assert!(cases.len() > 20);
        for case in cases {
            let url = case["url"].as_str().unwrap();
            assert_eq!(remote_key(url).as_deref(), case["key"].as_str(), "{url}");
        }
    }

    #[test]
    fn one_key_for_each_group() {
        #[rustfmt::skip]
        let groups: [(&str, &[&str]); 17] = [
            ("github.com/acme/app", &[
                "git@github.com:Acme/App.git", "https://github.com/acme/app", "https://github.com/acme/app/",
                "https://me@github.com/acme/app.git", "https://x-access-token:ghs_SECRET@github.com/acme/app.git",
                "ssh://git@github.com/acme/app.git", "ssh://git@github.com:22/acme/app", "git://github.com/acme/app.git",
                "HTTPS://GitHub.com/Acme/App.GIT", "github.com:acme/app", "git@github.com:/acme/app.git",
                "https://github.com//acme//app.git", "https://github.com./acme/app", "https://www.github.com/acme/app",
                "ssh+git://github.com/acme/app", "[git@github.com:22]:acme/app.git", "git@[github.com:22]:acme/app.git",
                "https://github.com:/acme/./app.git/?a=b/c", "https://me:p@ss@github.com/acme/app", "https://github.com/%61cme/app",
                "git@ssh.github.com:acme/app", "\tgithub.com:acme/app.git \r\n",
            ]),
            ("gitlab.com/group/sub/deep/app", &["git@gitlab.com:group/sub/deep/app.git", "https://gitlab.com/group/sub/deep/app", "ssh://git@altssh.gitlab.com:443/group/sub/deep/app.git"]),
            ("gitlab.com/group/app", &["https://gitlab.com/group/app"]),
            ("gitlab.com/scm/group/app", &["https://gitlab.com/scm/group/app", "git@gitlab.com:scm/group/app.git"]),
            ("dev.azure.com/org/my project/app", &[
                "https://org@dev.azure.com/org/My%20Project/_git/app", "git@ssh.dev.azure.com:v3/org/My%20Project/app",
                "https://org.visualstudio.com/My%20Project/_git/app", "https://org.visualstudio.com/DefaultCollection/My%20Project/_git/app",
                "org@vs-ssh.visualstudio.com:v3/org/My%20Project/app", "ssh://git@ssh.dev.azure.com/v3/org/My Project/app",
                "https://dev.azure.com/org/My%20Project/_git/_optimized/app",
            ]),
            ("dev.azure.com/org/app/app", &["https://dev.azure.com/org/_git/App", "git@ssh.dev.azure.com:v3/org/App/App", "https://org.visualstudio.com/_git/App"]),
            ("bb.corp/proj/app", &["ssh://git@bb.corp:7999/proj/app.git", "https://bb.corp/scm/proj/app.git", "https://bb.corp/scm/PROJ/app"]),
            ("bb.corp/~me/app", &["ssh://git@bb.corp:7999/~me/app.git", "https://bb.corp/scm/~me/app.git", "https://bb.corp/%7Eme/app"]),
            ("bb.corp/scm/app", &["https://bb.corp/scm/app"]),
            ("host.corp/2222/acme/app", &["git@host.corp:2222/acme/app.git"]),
            ("host.corp/acme/app", &["ssh://git@host.corp:2222/acme/app.git"]),
            // Ports alone do not tell two servers apart: as the table above has it.
            ("git.corp/a/b", &["https://git.corp:3000/a/b", "https://git.corp:8443/a/b"]),
            ("gitlab.com/repo", &["git@gitlab.com:repo.git"]),
            ("github.com/acme/app.git", &["https://github.com/acme/app.git.git"]),
            ("host.corp/home/me/app", &["ssh://host.corp/home/me/app/.git", "host.corp:home/me/app"]),
            ("[2001:db8::1]/acme/app", &["git@[2001:DB8:0::1]:acme/app", "https://[2001:db8::1]/acme/app"]),
            // An alias is a host of its own.
            ("work-alias/acme/app", &["git@work-alias:acme/app.git", "work-alias:acme/app"]),
        ];
        for (key, urls) in groups {
            for url in urls {
                assert_eq!(remote_key(url).as_deref(), Some(key), "{url}");
            }
        }
    }

    #[test]
    fn no_key() {
        #[rustfmt::skip]
        let urls = [
            // Local or relative.
            "./_dummy", "../app.git", "..", ".", "/", "file:///srv/app.git", "file://host/srv/app.git", "file:/srv/app.git", "/srv/app.git",
            "C:\\src\\app", "C:/src/app", "c:app", "\\\\server\\share\\app.git", "~/app.git", "~me/app.git", "/srv/a:b/c", "./a:b",
            "http://localhost:3000/a/b", "git@localhost:a/b", "git://127.0.0.1/a/b", "ssh://[::1]/a/b", "http://a.localhost/a/b",
            // Empty, or no path, or one that climbs.
            "", "   ", "\n", "https://", "https:///a/b", "https://github.com", "https://github.com//", "github.com:", "github.com:/", ":a/b",
            "https://github.com/acme/.git", "https://github.com/.git", "https://github.com/?a/b", "host:../app.git", "https://github.com/a/%2e%2e/b",
            // Not for git over a network.
            "not a url", "origin", "ext::ssh host app", "gcrypt::ssh://host/app", "s3://bucket/app", "https:github.com/acme/app", "my host:a/b",
            "javascript://%0aalert(1)", "-oProxyCommand=x:a/b", "ssh://-oProxyCommand=x/a/b", "a\u{0}b:c/d", "host:a/b\u{7f}c", "host:a%0Ab", "host:a\\b",
            // A password with a slash in it.
            "https://me:ab/cd@github.com/acme/app", "https://me:12/cd@github.com/acme/app", "me:ab@github.com:acme/app", "https://me:ab/cd",
            "https://ab/cd?e@github.com/acme/app", "https://me:12/cd#e@github.com/acme/app", "https://ab?cd@github.com/acme/app",
            // Brackets that do not close, or hold no address.
            "ssh://[::1/a/b", "[::1:a/b", "ssh://[host]/a/b", "ssh://[2001:db8::1]x/a/b", "[]:a", "ssh://[fe80::1%eth0]/a/b", "ssh://[",
            // Azure without an organisation.
            "https://dev.azure.com/org/p/_git", "ssh://org@vs-ssh.visualstudio.com:22/p/_ssh/app", "git@ssh.dev.azure.com:v3", "https://dev.azure.com/",
        ];
        for url in urls {
            assert_eq!(remote_key(url), None, "{url:?}");
        }
        assert_eq!(remote_key(&format!("github.com:{}", "a".repeat(URL_MAX))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(url in "\\PC{0,60}") {
            let _ = remote_key(&url);
        }

        #[test]
        fn any_likely_text_gives_a_plain_key(url in "(https|ssh|file|C)?(:|://|:/|::)?([a-c@:/.%~\\[\\]?#]|%2f|git|_git|scm|\\.\\.| ){0,20}") {
            if let Some(key) = remote_key(&url) {
                prop_assert!(!key.contains("//") && !key.contains('@'), "{}", key);
                prop_assert!(!key.ends_with('/') && !key.starts_with('/'), "{}", key);
                prop_assert_eq!(key.to_lowercase(), key);
            }
        }

        #[test]
        fn credentials_change_nothing_and_show_nowhere(
            scheme in "(https|http|ssh|git)",
            secret in "SECRET[A-Za-z0-9:@/?#%+=_.~!$&*-]{0,12}",
            user in "[a-z]{0,5}",
        ) {
            let plain = remote_key("https://git.example.org/acme/app");
            for credentials in [format!("{user}:{secret}"), secret.clone()] {
                let key = remote_key(&format!("{scheme}://{credentials}@git.example.org/acme/app.git"));
                // Where the secret breaks the URL, there may be no key at all.
                let written = !secret.contains(['/', '?', '#']);
                prop_assert!(if written { key == plain } else { key.is_none() }, "{:?}", key);
            }
            if !secret.contains([':', '/']) {
                prop_assert_eq!(remote_key(&format!("{secret}@git.example.org:acme/app")), plain);
            }
        }
    }
}
