//! Builds Java programs from source that is shipped with Longhaul. Maven downloads the packages, the JDK compiles the
//! classes. A program is built into the user's cache folder, and built again only if its source changes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::go::{failed, is_built, run};

/// The only Maven goal that is run, with a fixed version. The program's `pom.xml` names the packages that Maven
/// downloads, with their versions.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// The files that are needed to run a Java program.
#[derive(Debug, Clone)]
pub struct JavaProgram {
    pub java: PathBuf,
    /// The folders of the program's classes and packages, for Java's option `-cp`.
    pub class_path: String,
}

/// Builds the program `name` from its one source file `file` and the packages of its `pom.xml`, unless the cache has
/// it. Simultaneous callers share one build.
///
/// # Errors
///
/// The error is a missing requirement, as text that continues `skipped: needs`: a JDK, Maven, a folder for the build,
/// or a package that Maven's registry does not have.
pub fn java_program(name: &str, file: &str, source: &str, pom: &str) -> Result<JavaProgram, String> {
    let found = |program: &str, what: &str| crate::on_path(program).ok_or_else(|| what.to_owned());
    let (java, compiler, maven) = (found("java", "a JDK")?, found("javac", "a JDK")?, found("mvn", "Maven")?);
    let folder = crate::cache().map_err(|missing| missing.to_string())?.join("java").join(name);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
    let lock = File::create(folder.join("lock")).map_err(|error| failed(&error))?;
    lock.lock().map_err(|error| failed(&error))?;
    let (packages, classes) = (folder.join("packages"), folder.join("classes"));
    let class_path = format!("{}:{}/*", classes.display(), packages.display());
    let (stamp, asked) = (folder.join("built-from"), format!("{pom}\n{source}"));
    if is_built(&classes.join(file).with_extension("class"), &stamp, &asked) {
        return Ok(JavaProgram { java, class_path });
    }
    println!("building {name} with Maven and javac …");
    // Packages of an older `pom.xml` would come first in the class path.
    for old in [&packages, &classes] {
        let _ = std::fs::remove_dir_all(old);
    }
    for (file, content) in [(file, source), ("pom.xml", pom)] {
        std::fs::write(folder.join(file), content).map_err(|error| failed(&error))?;
    }
    let into = |what: &str, folder: &Path| format!("{what}{}", folder.display());
    let mut fetch = Command::new(maven);
    fetch.args(["--quiet", "--batch-mode", COPY]).arg(into("-DoutputDirectory=", &packages)).current_dir(&folder);
    run(&mut fetch).map_err(|said| format!("the Maven packages of {name}: {said}"))?;
    let mut compile = Command::new(compiler);
    compile.args(["-cp", &class_path, "-d"]).arg(&classes).arg(file).current_dir(&folder);
    run(&mut compile).map_err(|said| format!("a JDK that compiles {name}: {said}"))?;
    std::fs::write(&stamp, asked).map_err(|error| failed(&error))?;
    Ok(JavaProgram { java, class_path })
}
