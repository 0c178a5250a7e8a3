//! Makes images without a container engine: archives in the format of `docker save`, with a few files and no base
//! image.
//!
//! The caller chooses the files of an image.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The name of the pause image, whose process holds the namespaces of a Pod.
pub(super) const PAUSE: &str = "localhost/longhaul-pause:1";
/// The address at which the kernel loads ELF programs with a fixed position.
const BASE: u64 = 0x40_0000;
/// Size in bytes of the headers before the code of an ELF-64 file: the file header, and one program header.
const HEADERS: usize = 64 + 56;

#[derive(Debug, Clone)]
pub struct File {
    /// The path, without a leading slash.
    pub path: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// An image with one layer.
#[derive(Debug, Clone)]
pub struct Image {
    /// The name by which Pods use the image, with a tag: `docker.io/library/web:1`.
    pub name: String,
    /// All files of the image; the archive also gets their folders.
    pub files: Vec<File>,
    pub entrypoint: Vec<String>,
    /// The user id and group id of the image's process.
    pub user: u32,
}

/// The archive of an OCI image layout in a folder, as written by `skopeo copy … oci:FOLDER` and `docker buildx build
/// --output type=oci,tar=false` (OCI image specification, "Image Layout").
pub fn archive_of_layout(folder: &Path) -> io::Result<Vec<u8>> {
    for name in [LAYOUT, "index.json", "blobs"] {
        if !folder.join(name).exists() {
            let why = format!("{} has no `{name}`: it is no OCI image layout", folder.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(false);
    for name in [LAYOUT, "index.json"] {
        archive.append_path_with_name(folder.join(name), name)?;
    }
    archive.append_dir_all("blobs", folder.join("blobs"))?;
    archive.into_inner()
}

/// The file that marks a folder as an OCI image layout.
const LAYOUT: &str = "oci-layout";

impl Image {
    /// An image of a program on this machine with its shared libraries. The image starts the program as `/NAME`.
    pub fn of_program(name: &str, program: &Path, user: u32) -> io::Result<Self> {
        let called = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut files = vec![File { path: called.clone(), bytes: std::fs::read(program)?, executable: true }];
        for library in libraries(program)? {
            let path = library.to_string_lossy().trim_start_matches('/').to_owned();
            files.push(File { path, bytes: std::fs::read(&library)?, executable: true });
        }
        Ok(Self { name: name.to_owned(), files, entrypoint: vec![format!("/{called}")], user })
    }

    /// The image as an archive, which `ctr images import` and `docker load` read.
    pub fn archive(&self) -> io::Result<Vec<u8>> {
        let layer = layer(&self.files)?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {"Entrypoint": self.entrypoint, "User": format!("{0}:{0}", self.user), "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", hex(&layer))]},
        });
        let config = config.to_string().into_bytes();
        let named = format!("{}.json", hex(&config));
        let manifest = json!([{"Config": named, "RepoTags": [self.name], "Layers": ["layer.tar"]}]);
        let mut archive = tar::Builder::new(Vec::new());
        append(&mut archive, "manifest.json", manifest.to_string().as_bytes(), 0o644)?;
        append(&mut archive, &named, &config, 0o644)?;
        append(&mut archive, "layer.tar", &layer, 0o644)?;
        archive.into_inner()
    }
}

/// The SHA-256 of bytes in hex, as in image names.
fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The shared libraries and the loader of a program, from `ldd`; empty for a statically linked program.
fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let told = std::process::Command::new("ldd").arg(program).output()?;
    Ok(parse(&String::from_utf8_lossy(&told.stdout)))
}

/// Parses lines of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x…)`, and for the loader `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn parse(told: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        line.split(' ').next().filter(|path| path.starts_with('/')).map(PathBuf::from)
    };
    told.lines().filter_map(path).collect()
}

fn layer(files: &[File]) -> io::Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    let mut made = std::collections::BTreeSet::new();
    for file in files {
        let parents: Vec<&Path> = Path::new(&file.path).ancestors().skip(1).collect();
        for folder in parents.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            if made.insert(folder.to_owned()) {
                let mut header = tar::Header::new_gnu();
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                layer.append_data(&mut header, format!("{}/", folder.display()), io::empty())?;
            }
        }
        append(&mut layer, &file.path, &file.bytes, if file.executable { 0o755 } else { 0o644 })?;
    }
    layer.into_inner()
}

fn append(archive: &mut tar::Builder<Vec<u8>>, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes)
}

/// The name of this machine's CPU in image metadata.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The pause image; `None` if no pause program exists for this CPU.
pub(super) fn pause() -> Option<Image> {
    let file = File { path: "pause".to_owned(), bytes: pause_program()?, executable: true };
    Some(Image { name: PAUSE.to_owned(), files: vec![file], entrypoint: vec!["/pause".to_owned()], user: 0 })
}

/// A program that waits for SIGTERM or SIGINT and then ends. The program ignores SIGCHLD, so the kernel reaps orphaned
/// processes. The sixty instructions of the program are assembled by hand, because the machine may have no compiler.
pub(super) fn pause_program() -> Option<Vec<u8>> {
    if std::env::consts::ARCH != "x86_64" {
        return None;
    }
    // After the code: the set of SIGTERM (15) and SIGINT (2), and a sigaction that ignores.
    let data =
        |code: usize| u32::try_from(BASE).unwrap_or_default() + u32::try_from(HEADERS + code).unwrap_or_default();
    let build = |code_bytes: usize| {
        let (set, action) = (data(code_bytes).to_le_bytes(), data(code_bytes + 8).to_le_bytes());
        let mut code = Vec::new();
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| code.extend_from_slice(part));
        // rt_sigprocmask(SIG_BLOCK, set, NULL, 8): a first process gets only signals that it handles or blocks.
        put(&[&[0x31, 0xff, 0xbe], &set, &[0x31, 0xd2, 0x41, 0xba, 8, 0, 0, 0, 0xb8, 14, 0, 0, 0, 0x0f, 0x05]]);
        // rt_sigaction(SIGCHLD, ignore, NULL, 8): the kernel reaps orphans.
        put(&[&[0xbf, 17, 0, 0, 0, 0xbe], &action, &[0x31, 0xd2, 0xb8, 13, 0, 0, 0, 0x0f, 0x05]]);
        // rt_sigtimedwait(set, NULL, NULL, 8), repeated if it is interrupted (jump back over its 20 bytes).
        put(&[&[0xbf], &set, &[0x31, 0xf6, 0x31, 0xd2, 0xb8, 128, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0x78, 0xec]]);
        // exit(0)
        put(&[&[0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]]);
        code
    };
    let mut code = build(build(0).len());
    code.extend_from_slice(&0x4002_u64.to_le_bytes());
    // The kernel's sigaction: handler (SIG_IGN is 1), flags, restorer, mask.
    for word in [1_u64, 0, 0, 0] {
        code.extend_from_slice(&word.to_le_bytes());
    }
    Some(elf(&code))
}

/// An ELF-64 file for x86-64 with one segment, which is readable and executable and starts with the code (elf(5)).
fn elf(code: &[u8]) -> Vec<u8> {
    let size = (HEADERS + code.len()) as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let half = |value: u16| value.to_le_bytes();
    let start = BASE + HEADERS as u64;
    for part in [&half(2)[..], &half(62), &1_u32.to_le_bytes(), &start.to_le_bytes(), &64_u64.to_le_bytes()] {
        file.extend_from_slice(part);
    }
    // No table of sections, no flags, the sizes of the header and of the one entry.
    file.extend_from_slice(&0_u64.to_le_bytes());
    file.extend_from_slice(&0_u32.to_le_bytes());
    for value in [64, 56, 1, 0, 0, 0] {
        file.extend_from_slice(&half(value));
    }
    file.extend_from_slice(&1_u32.to_le_bytes());
    file.extend_from_slice(&5_u32.to_le_bytes());
    for value in [0, BASE, BASE, size, size, 0x1000] {
        file.extend_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(code);
    file
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn the_pause_program_waits_until_it_is_told_to_end() {
        let Some(program) = pause_program().filter(|_| cfg!(target_os = "linux")) else {
            println!("skipped: needs Linux on x86_64");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pause");
        std::fs::write(&path, program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = std::process::Command::new(&path).spawn().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        let waits = || std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(10);
        // rt_sigtimedwait on x86-64.
        while !waits().starts_with("128 ") {
            assert!(Instant::now() < deadline, "{}", waits());
            std::thread::yield_now();
        }
        kill_process(pid, Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn an_archive_names_its_image_and_holds_its_files_with_folders() {
        let file = |path: &str, executable| File { path: path.to_owned(), bytes: b"text".to_vec(), executable };
        let image = Image {
            name: "docker.io/library/web:1".to_owned(),
            files: vec![file("usr/bin/web", true), file("usr/bin/more", false)],
            entrypoint: vec!["/usr/bin/web".to_owned()],
            user: 65532,
        };
        let archive = image.archive().unwrap();
        assert_eq!(archive, image.archive().unwrap(), "the same image is the same bytes");
        let mut entries = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(&archive[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            entries.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        let manifest: serde_json::Value = serde_json::from_slice(&entries["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], image.name);
        let config: serde_json::Value =
            serde_json::from_slice(&entries[manifest[0]["Config"].as_str().unwrap()]).unwrap();
        assert_eq!(config["config"]["User"], "65532:65532");
        let names: Vec<String> = tar::Archive::new(&entries["layer.tar"][..])
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["usr/", "usr/bin/", "usr/bin/web", "usr/bin/more"]);
    }

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let told = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t\
            /lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tlibgone.so => not found\n";
        assert_eq!(parse(told), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from));
        assert_eq!(parse("\tnot a dynamic executable\n"), Vec::<PathBuf>::new());
    }
}
