//! `kubernetes`, the official Python client, and `kopf`.

use std::path::PathBuf;

use installer::Missing;
use kube::api::{DeleteParams, PostParams};
use mock_faults::{Form, Name};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::ordeal::{self, Habit};
use crate::program::Program;
use crate::world::{PACKAGES, World, until};

/// A Python client and its program.
struct Client {
    package: &'static str,
    version: &'static str,
    program: &'static str,
}

static OFFICIAL: Client =
    Client { package: "kubernetes", version: "37.0.2", program: include_str!("python/program.py") };

static KOPF: Client = Client { package: "kopf", version: "1.45.2", program: include_str!("kopf/program.py") };

/// An installed client: Python, its packages, and the folder of the program.
struct Installed {
    python: PathBuf,
    packages: PathBuf,
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Client {
    async fn install(&self) -> Result<Installed, Missing> {
        let installed = installer::package(self.package, self.version).unwrap().install().await?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.py"), self.program).unwrap();
        Ok(Installed { python: installed.interpreter, packages: installed.folder, folder, name: self.package })
    }
}

impl Installed {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.env_clear().env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONUNBUFFERED", "1").args(arguments).current_dir(self.folder.path());
        command
    }

    fn start(&self, mode: &str, world: &World) -> Program {
        Program::start(self.name, self.command(&["program.py", mode]), world)
    }

    fn operator(&self, streamed: bool, world: &World) -> Program {
        let run = ["-m", "kopf", "run", "--standalone", "--namespace=default", "--quiet", "program.py"];
        let mut command = self.command(&run);
        if streamed {
            command.env("INITIAL_STREAMING", "1");
        }
        Program::start(self.name, command, world)
    }
}

/// The installed client, or a line that says what is missing.
async fn installed(client: &Client) -> Option<Installed> {
    client.install().await.inspect_err(|missing| println!("skipped: needs {missing}")).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_watch_sees_every_change_and_survives() {
    let Some(client) = installed(&OFFICIAL).await else { return };
    let mut world = World::start().await;
    world.create("listed").await;
    let mut program = client.start("stream", &world);
    ordeal::watch(&mut world, &mut program, Habit::Resumes).await;
    println!("it told: {:?}", program.remarks);
    program.stop().await;
    world.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_informer_keeps_its_cache_through_reset_and_410() {
    let Some(client) = installed(&OFFICIAL).await else { return };
    let mut world = World::start().await;
    let mut program = client.start("informer", &world);
    informer(&mut world, &mut program).await;
    program.stop().await;
    world.server.shutdown().await;
}

/// The informer needs a typed list, so it watches config maps.
async fn informer(world: &mut World, program: &mut Program) {
    use k8s_openapi::api::core::v1::ConfigMap;
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(world.harness.clone(), "default");
    let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    world.watched().await;
    let faults = [
        (None, None),
        (Some(Name::WatchReset), None),
        (Some(Name::Watch410), Some(Form::Http)),
        (Some(Name::Watch410), Some(Form::Stream)),
    ];
    for (index, (fault, form)) in faults.into_iter().enumerate() {
        world.watched().await;
        let told = world.story(0).len();
        let id = fault.map(|name| world.begin(name, "configmaps", |fault| fault.put("form", form)));
        let name = format!("map-{index}");
        maps.create(&PostParams::default(), &map(&name)).await.unwrap();
        program.until(&name, |program| program.view.contains_key(&name)).await;
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
        program.until(&format!("the end of {name}"), |program| !program.view.contains_key(&name)).await;
        if let Some(id) = id {
            assert!(world.server.faults().hits(id) > 0, "{fault:?}");
            world.server.faults().end(id);
            println!("{fault:?} {form:?}\n  {}", world.story(told).join("\n  "));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_and_writes() {
    let Some(client) = installed(&OFFICIAL).await else { return };
    let world = World::start().await;
    let mut program = client.start("crud", &world);
    program.finish().await;
    assert_eq!(program.remarks.len(), 1, "it came to its end");
    assert!(world.truth().await.is_empty());
    world.server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kopf_operator_does_its_work_through_reset_and_410() {
    let Some(client) = installed(&KOPF).await else { return };
    operator(&client, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kopf_operator_does_its_work_with_streamed_lists() {
    let Some(client) = installed(&KOPF).await else { return };
    operator(&client, true).await;
}

/// Create, update and delete with a finalizer and a status, through every fault.
async fn operator(client: &Installed, streamed: bool) {
    let mut world = World::start().await;
    world.create("listed").await;
    let mut program = client.operator(streamed, &world);
    handled(&world, &mut program, "listed", "a:1").await;
    world.create("made").await;
    handled(&world, &mut program, "made", "a:1").await;
    let made = world.get("made").await;
    assert_eq!(made["metadata"]["finalizers"], json!(["kopf.zalando.org/KopfFinalizerMarker"]));
    assert_eq!(made["status"]["phase"], "Ready");
    let asked = world.story(0).join("\n");
    assert_eq!(asked.contains("sendInitialEvents=true"), streamed, "{asked}");
    for (index, (name, form)) in
        [(Name::WatchReset, None), (Name::Watch410, Some(Form::Http)), (Name::Watch410, Some(Form::Stream))]
            .into_iter()
            .enumerate()
    {
        world.watched().await;
        let told = world.story(0).len();
        let id = world.begin(name, PACKAGES, |fault| fault.put("form", form));
        let image = format!("b:{index}");
        world.change("made", &image).await;
        if form == Some(Form::Http) {
            program = restarted(program, client, streamed, &world).await;
        }
        handled(&world, &mut program, "made", &image).await;
        assert!(world.server.faults().hits(id) > 0, "{name:?}");
        world.server.faults().end(id);
        println!("kopf, {name:?} {form:?}\n  {}", world.story(told).join("\n  "));
    }
    world.delete("made").await;
    program.until("the deletion", |program| program.remarks.iter().any(|remark| remark["handled"] == "delete")).await;
    until("the finalizer is taken away", async || !world.truth().await.contains_key("made")).await;
    program.stop().await;
    world.server.shutdown().await;
}

/// kopf 1.45.2 takes a 410 only in the stream; as HTTP status it is fatal by its design ("not allowed to fail" are
/// only 429s) and the Pod's restart is the cure. What the server owes it is an answer that it can read.
async fn restarted(mut program: Program, client: &Installed, streamed: bool, world: &World) -> Program {
    program.end().await;
    let last_words = program.troubles();
    assert!(last_words.contains("'code': 410") && last_words.contains("'reason': 'Expired'"), "{last_words}");
    println!("kopf ended at the 410 and is started again");
    client.operator(streamed, world)
}

/// Waits until the operator handled that version and wrote so into the status.
async fn handled(world: &World, program: &mut Program, name: &str, image: &str) {
    let said = |remark: &Value| remark["name"] == *name && remark["image"] == *image;
    program.until(&format!("{name} {image} handled"), |program| program.remarks.iter().any(said)).await;
    until("the status says so", async || world.get(name).await["status"]["image"] == *image).await;
}
