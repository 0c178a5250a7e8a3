//! Tests of the scenarios that `longhaul init` proposes for small projects with the layouts of the real tools.

use super::*;
use crate::scenario::Source;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: baskets.shop.example.com}\nspec:\n  \
    group: shop.example.com\n  scope: Namespaced\n  names: {plural: baskets, kind: Basket, singular: basket, listKind: BasketList}\n  versions:\n  - \
    name: v1\n    served: true\n    storage: true\n    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
    spec: {type: object, properties: {size: {type: integer, minimum: 1, maximum: 9}}}\n          \
    status: {type: object, properties: {observedGeneration: {type: integer}}}\n";
const HOOKS: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: mutating}\nwebhooks:\n- \
    name: m.example.com\n  clientConfig: {service: {name: s, namespace: n, path: /mutate-shop-example-com-v1-basket}}\n  rules: [{apiGroups: \
    [shop.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [baskets]}]\n  sideEffects: None\n  admissionReviewVersions: [v1]\n";
const SAMPLE: &str = "apiVersion: shop.example.com/v1\nkind: Basket\nmetadata: {name: sample}\nspec: {size: 2}\n";
const CONTROLLER: &str = "package controller\nimport (\n\tcorev1 \"k8s.io/api/core/v1\"\n\tshop \"example.com/shop/api/v1\"\n)\nfunc f() {\n\t\
    basket.Status.ObservedGeneration = basket.Generation\n\tctrl.NewControllerManagedBy(m).For(&shop.Basket{}).Owns(&corev1.ConfigMap{}).Complete(r)\n}\n";

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The proposed scenario, which must be valid, and the list of skipped files.
fn proposed(files: &[(&str, &str)]) -> (String, Vec<String>) {
    let folder = tree(files);
    let found = Found::read(folder.path(), None).unwrap();
    let text = scenario(&found, &Seen::nothing(seen::Came::NotRun("nobody said yes".to_owned())));
    let file = folder.path().join("longhaul.yaml");
    std::fs::write(&file, &text).unwrap();
    if let Err(error) = Source::read(file.to_str().unwrap()) {
        panic!("{error}\n{text}");
    }
    (text, found.doubts)
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "`{line}` is not in\n{text}");
    }
}

/// A project with the layout of kubebuilder 4, which has flags for all addresses and files.
fn fourth(main: &str) -> Vec<(&'static str, String)> {
    let own = |text: &str| text.to_owned();
    vec![
        (
            "PROJECT",
            own(
                "domain: example.com\nlayout:\n- go.kubebuilder.io/v4\nprojectName: shop-operator\nrepo: example.com/shop\nresources:\n- \
            {api: {crdVersion: v1}, controller: true, domain: example.com, group: shop, kind: Basket, version: v1}\nversion: \"3\"\n",
            ),
        ),
        ("go.mod", own("module example.com/shop\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n")),
        ("Makefile", own("build: vet\n\tgo build -o bin/manager cmd/main.go\n")),
        ("cmd/main.go", main.to_owned()),
        ("internal/controller/basket_controller.go", own(CONTROLLER)),
        ("config/crd/bases/shop.example.com_baskets.yaml", own(CRD)),
        ("config/webhook/manifests.yaml", own(HOOKS)),
        ("config/samples/shop_v1_basket.yaml", own(SAMPLE)),
        ("docs/requirements.txt", own("mkdocs\n")),
    ]
}

fn borrowed<'a>(files: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    files.iter().map(|(path, text)| (*path, text.as_str())).collect()
}

const MAIN: &str = "package main\nfunc main() {\n\tflag.StringVar(&a, \"metrics-bind-address\", \"0\", \"x\")\n\tflag.BoolVar(&s, \"metrics-secure\", true, \"x\")\n\t\
    flag.StringVar(&p, \"health-probe-bind-address\", \":8081\", \"x\")\n\tflag.BoolVar(&l, \"leader-elect\", false, \"x\")\n\t\
    flag.StringVar(&c, \"webhook-cert-path\", \"\", \"x\")\n\tflag.IntVar(&w, \"webhook-port\", 9443, \"x\")\n\topts.BindFlags(flag.CommandLine)\n}\n";

#[test]
fn a_project_of_kubebuilder_4_is_started_with_its_flags() {
    let (text, doubts) = proposed(&borrowed(&fourth(MAIN)));
    has(
        &text,
        &[
            "# go.kubebuilder.io/v4, as kubebuilder lays it out (PROJECT).",
            "name: shop-operator\n",
            "# Build it first: go build -o bin/manager cmd/main.go\n",
            "      - ./bin/manager\n      - '--metrics-bind-address=127.0.0.1:${LONGHAUL_METRICS_PORT}'\n      - '--metrics-secure=false'\n",
            "      - '--health-probe-bind-address=127.0.0.1:0'\n      - '--leader-elect=false'\n",
            "      - '--webhook-cert-path=${LONGHAUL_TLS_DIR}'\n      - '--webhook-port=${LONGHAUL_WEBHOOK_PORT}'\n",
            "  manifests:\n    - config/crd/bases\n",
            "url: http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics\n    series: [go_goroutines]\n",
            "  # children:\n  #   - {resource: configmaps/v1, by: owner}\n",
            "  # - {name: children-drift, afterLoad: 1s, children: configmaps/v1, share: 0.3}\n",
            "  install: {webhooks: config/webhook/manifests.yaml}\n",
            "  admission: {errors: 0}\n",
            "  witness: {kind: status}\n",
            "They look like the sample in config/samples/shop_v1_basket.yaml.",
            "      size: '${random 2..5}'\n",
            "requests: {rate: ",
        ],
    );
    assert!(!text.contains("TMPDIR") && !text.contains("zap-log-level") && !text.contains("port: 9443"), "{text}");
    assert_eq!(doubts, Vec::<String>::new());
}

/// A project with the layout of kubebuilder 3: `main.go` in the top folder, no flags for certificates and port.
#[test]
fn a_project_of_kubebuilder_3_serves_where_it_always_did() {
    let main = "package main\nfunc main() {\n\tflag.StringVar(&a, \"metrics-bind-address\", \":8080\", \"x\")\n\tflag.StringVar(&p, \"health-probe-bind-address\", \
        \":8081\", \"x\")\n\tflag.BoolVar(&l, \"leader-elect\", false, \"x\")\n\topts.BindFlags(flag.CommandLine)\n\tctrl.NewManager(c, ctrl.Options{Port: 9443})\n}\n";
    let mut files = fourth(main);
    for (path, text) in &mut files {
        match *path {
            "cmd/main.go" => *path = "main.go",
            "internal/controller/basket_controller.go" => {
                *path = "controllers/basket_controller.go";
                *text = text.replace("basket.Status.ObservedGeneration = basket.Generation", "");
            }
            "Makefile" => *text = "build: generate fmt vet\n\tgo build -o bin/manager main.go\n".to_owned(),
            "PROJECT" => *text = text.replace("/v4", "/v3"),
            _ => {}
        }
    }
    let (text, _) = proposed(&borrowed(&files));
    has(
        &text,
        &[
            "# Build it first: go build -o bin/manager main.go\n",
            "      - '--metrics-bind-address=127.0.0.1:${LONGHAUL_METRICS_PORT}'\n      - '--health-probe-bind-address=127.0.0.1:0'\n",
            "      - '--zap-log-level=5'\n",
            "    env: {TMPDIR: '${LONGHAUL_TLS_DIR}'}\n",
            "  install: {webhooks: config/webhook/manifests.yaml}\n",
            "    serves: {port: 9443}\n",
            "  witness: {kind: log, of: Basket, preset: controller-runtime}\n",
        ],
    );
    assert!(!text.contains("metrics-secure"), "{text}");
}

#[test]
fn what_make_has_not_made_yet_is_asked_for() {
    let mut files = fourth(MAIN);
    files.retain(|(path, _)| !path.starts_with("config/"));
    let (_, doubts) = proposed(&borrowed(&files));
    assert!(
        doubts[0].starts_with("config/crd/bases: PROJECT names kinds") && doubts[0].contains("`make manifests`"),
        "{doubts:?}"
    );
}

/// operator-sdk uses the layout of kubebuilder and keeps copies of manifests in `bundle/`; each kind is found once.
#[test]
fn a_project_of_operator_sdk_has_each_kind_once() {
    let mut files = fourth(MAIN);
    for (path, text) in &mut files {
        if *path == "PROJECT" {
            text.push_str(
                "plugins:\n  manifests.sdk.operatorframework.io/v2: {}\n  scorecard.sdk.operatorframework.io/v2: {}\n",
            );
        }
    }
    files.push(("bundle/manifests/shop.example.com_baskets.yaml", CRD.to_owned()));
    let (text, _) = proposed(&borrowed(&files));
    has(&text, &["as operator-sdk lays it out", "  manifests:\n    - config/crd/bases\n"]);
    assert!(!text.contains("bundle"), "{text}");
}

#[test]
fn a_project_of_kube_rs_holds_by_its_finalizer() {
    let crd = CRD.replace("observedGeneration", "note");
    let (text, _) = proposed(&[
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\ndefault-run = \"controller\"\n[[bin]]\nname = \"crdgen\"\n[[bin]]\nname = \"controller\"\n[dependencies]\nkube = \"2\"\n",
        ),
        (
            "src/controller.rs",
            "pub static HOLD: &str = \"baskets.shop.example.com\";\nasync fn r() { finalizer(&baskets, HOLD, basket, |event| async {}).await }\n",
        ),
        ("yaml/crd.yaml", &crd),
    ]);
    has(
        &text,
        &[
            "Rust with kube-rs, by Cargo.toml.",
            "    run: [./target/release/controller]\n",
            "  witness: {kind: finalizer, name: baskets.shop.example.com}\n",
            "  events: {unseen: 0, ghost: 0}\n",
            "    - yaml/crd.yaml\n",
        ],
    );
}

#[test]
fn a_project_of_the_java_operator_sdk_is_started_by_its_class() {
    let crd = CRD.replace("observedGeneration", "note");
    let (text, _) = proposed(&[
        (
            "pom.xml",
            "<project><artifactId>shop</artifactId><version>1</version><dependencies><dependency><groupId>io.javaoperatorsdk</groupId>\
            <artifactId>operator-framework</artifactId></dependency></dependencies></project>\n",
        ),
        (
            "src/main/java/com/example/Shop.java",
            "package com.example;\nclass Shop { public static void main(String[] words) {} }\n",
        ),
        (
            "src/main/java/com/example/BasketReconciler.java",
            "package com.example;\nclass BasketReconciler implements Reconciler<Basket>, Cleaner<Basket> {}\n",
        ),
        ("target/classes/META-INF/fabric8/baskets.shop.example.com-v1.yml", &crd),
    ]);
    has(
        &text,
        &[
            "Java with the Java Operator SDK, by pom.xml.",
            "# Build it first: mvn package dependency:copy-dependencies",
            "    run: [java, '-cp', 'target/classes:target/dependency/*', com.example.Shop]\n",
            "  witness: {kind: finalizer, name: baskets.shop.example.com/finalizer}\n",
            "    - target/classes/META-INF/fabric8/baskets.shop.example.com-v1.yml\n",
        ],
    );
}

/// The scenario names the plain manifests, which tools rewrite when the sources change. A patch that changes rules goes
/// to a separate file.
#[test]
fn a_build_that_says_something_else_is_kept_beside_the_scenario() {
    let files = fourth(MAIN);
    let folder = tree(&borrowed(&files));
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    let mut renamed = read(HOOKS);
    renamed["metadata"]["name"] = "shop-mutating".into();
    let mut found = Found::read(folder.path(), None).unwrap();
    found.kustomized(Kustomized::Built {
        folder: "config/default",
        objects: vec![read(CRD), renamed.clone()],
        others: Vec::new(),
    });
    assert_eq!(found.made, []);
    renamed["webhooks"][0]["failurePolicy"] = "Ignore".into();
    found.kustomized(Kustomized::Built {
        folder: "config/default",
        objects: vec![read(CRD), renamed],
        others: Vec::new(),
    });
    assert_eq!(found.made[0].0, BUILT_HOOKS);
    assert!(found.made[0].1.contains("failurePolicy: Ignore"), "{}", found.made[0].1);
    assert_eq!(found.hooks[0].file, PathBuf::from(BUILT_HOOKS));
    let mut found = Found::read(folder.path(), None).unwrap();
    found.kustomized(Kustomized::Left("config/default: without kubectl".to_owned()));
    assert_eq!(found.doubts, ["config/default: without kubectl"]);
}

/// A name with line breaks in a project file gives a valid scenario or an error message, and its text never becomes a
/// line of the scenario.
#[test]
fn names_with_lines_in_them_stay_in_their_place() {
    let mut files = fourth(MAIN);
    files.push((
        "config/samples/a_first.yaml",
        "apiVersion: shop.example.com/v1\nkind: Basket\nspec: {size: 1, \"a\\nfaults\": \"x\\n\\nchurn: y\\u202e\"}\n"
            .to_owned(),
    ));
    for (path, text) in &mut files {
        if *path == "PROJECT" {
            *text = "layout: [\"go.kubebuilder.io/v4\\nsubject: {service: {}}\\u001b[2J\"]\nprojectName: \"x\\ny\"\nversion: \"3\"\n".to_owned();
        }
        if *path == "Makefile" {
            *text = "a:\n\tgo build -o bin/$(shell touch /tmp/x) cmd/main.go\n".to_owned();
        }
    }
    let (text, _) = proposed(&borrowed(&files));
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    for line in text.lines() {
        assert!(
            !line.starts_with("churn: y") && !line.starts_with("subject: {kind") && !line.contains("$(shell"),
            "{text}"
        );
    }
    has(&text, &["name: x-y\n", "go build -o bin/subject ./cmd"]);
}

#[test]
fn names_are_those_of_scenarios() {
    assert_eq!(named("My Operator_2"), "my-operator-2");
    assert_eq!(named("."), "mine");
    assert_eq!(named(&"x".repeat(90)).len(), 40);
}

/// The keys of a scenario that have no comment `seen` or `check` above them.
fn unsaid(text: &str) -> Vec<String> {
    let (mut said, mut unsaid): (Vec<(usize, bool)>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut comment, mut lines) = (false, text.lines().peekable());
    while let Some(line) = lines.next() {
        let (indent, bare) = (line.len() - line.trim_start().len(), line.trim_start());
        if bare.is_empty() {
            comment = false;
        } else if bare.starts_with('#') {
            comment |= bare.contains("seen") || bare.contains("check");
        } else {
            said.retain(|(above, _)| *above < indent);
            let is_said = comment || said.iter().any(|(_, is_said)| *is_said);
            // A key without a value of its own is a section for the keys below it.
            let is_section =
                bare.ends_with(':') && lines.peek().is_some_and(|next| next.len() - next.trim_start().len() > indent);
            if !is_said && !is_section {
                unsaid.push(line.to_owned());
            }
            said.push((indent, is_said));
            // A comment applies to all keys up to the next comment at its own depth.
            comment = comment
                && !is_section
                && lines.peek().is_some_and(|next| {
                    next.len() - next.trim_start().len() == indent && !next.trim_start().starts_with('#')
                });
        }
    }
    unsaid
}

#[test]
fn every_part_of_a_file_says_seen_or_check() {
    assert_eq!(unsaid("# check: a\na: 1\nb: 2\n\nc: 3\nd:\n  # seen: x\n  e: {f: 1}\n"), ["c: 3"]);
    let files = fourth(MAIN);
    let (text, _) = proposed(&borrowed(&files));
    assert_eq!(unsaid(&text), Vec::<String>::new(), "{text}");
    let (text, _) = proposed(&[("config/crd/bases/a.yaml", CRD)]);
    assert_eq!(unsaid(&text), Vec::<String>::new(), "{text}");
}

/// An observation in which the program reacts to the second kind of a project and does not serve the project's
/// webhooks.
fn observed() -> Seen {
    use seen::{By, Came, Change, Child, Followed, Open, Reaction, Refused};
    let reaction = Reaction {
        kind: "Basket".to_owned(),
        resource: "baskets.shop.example.com".to_owned(),
        churned: "baskets.shop.example.com/v1".to_owned(),
        from: Some(PathBuf::from("config/samples/shop_v1_basket.yaml")),
        template: serde_json::json!({"kind": "Basket", "spec": {"size": "${random 2..5}"}}),
        with: vec![serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}})],
        refused: None,
        requests: 12,
        children: vec![Child {
            resource: "pods".to_owned(),
            churned: "pods/v1".to_owned(),
            count: 2,
            by: By::Owner,
            is_restored: Some(true),
            varies: false,
        }],
        finalizers: vec!["shop.example.com/hold".to_owned()],
        status: vec!["observedGeneration".to_owned()],
        observes: true,
        conditions: Vec::new(),
        is_lazy: false,
        changes: vec![
            Change { pointer: "/spec/size".to_owned(), refused: None, is_noticed: true, is_repeated: Some(true) },
            Change {
                pointer: "/spec/name".to_owned(),
                refused: Some("is immutable".to_owned()),
                is_noticed: false,
                is_repeated: None,
            },
        ],
        is_gone: Some(true),
        missing: vec![("secrets".to_owned(), "other".to_owned())],
    };
    let silent = Reaction {
        kind: "Shelf".to_owned(),
        churned: "shelves.shop.example.com/v1".to_owned(),
        requests: 0,
        ..reaction.clone()
    };
    let port = |port, variable, page: &str| Open {
        port,
        variable,
        is_tls: false,
        pages: vec![(page.to_owned(), 200)],
        counts_goroutines: page == "/metrics",
    };
    let refused = Refused {
        verb: "create",
        resource: "leases.coordination.k8s.io".to_owned(),
        status: 404,
        why: "namespaces \"shop-system\" not found".to_owned(),
        times: 3,
    };
    Seen {
        built: Some("go build -o bin/manager cmd/main.go".to_owned()),
        run: vec!["./bin/manager".to_owned(), "--metrics-bind-address=127.0.0.1:${LONGHAUL_METRICS_PORT}".to_owned()],
        variables: vec![("MODE".to_owned(), "fast".to_owned())],
        mended: vec!["--x was left out: the program does not accept the flag, or not this value".to_owned()],
        followed: vec![Followed { resource: "baskets.shop.example.com".to_owned(), is_watched: true }],
        refused: vec![refused],
        absent: vec!["cert-manager.io/v1".to_owned()],
        ports: vec![port(4711, Some("LONGHAUL_METRICS_PORT"), "/metrics"), port(6060, None, "/healthz")],
        lease: Some(("shop-system".to_owned(), "abc".to_owned())),
        namespaces: vec!["shop-system".to_owned()],
        reactions: vec![reaction, silent],
        ..Seen::nothing(Came::Ran)
    }
}

/// The scenario after an observation, which must be valid.
fn written(files: &[(&str, &str)], seen: &Seen) -> String {
    let folder = tree(files);
    let mut found = Found::read(folder.path(), None).unwrap();
    found.observed(seen);
    let text = scenario(&found, seen);
    for (name, text) in found.made.iter().map(|(name, text)| (*name, text)).chain([("longhaul.yaml", &text)]) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    if let Err(error) = Source::read(folder.path().join("longhaul.yaml").to_str().unwrap()) {
        panic!("{error}\n{text}");
    }
    text
}

#[test]
fn what_was_seen_is_what_is_written() {
    let mut files = fourth(MAIN);
    files.push((
        "config/crd/bases/shelves.yaml",
        CRD.replace("basket", "shelf").replace("Basket", "Shelf").replace("shelfs", "shelves"),
    ));
    let text = written(&borrowed(&files), &observed());
    has(
        &text,
        &[
            "# seen: it follows baskets.shop.example.com.\n",
            "# seen: it takes the Lease abc in the namespace shop-system.\n",
            "# check: seen: `create leases.coordination.k8s.io` was refused with 404, 3 times: namespaces",
            "# check: seen: it requests cert-manager.io/v1, which the API server does not have",
            "# check: seen: it serves no reviews, so its webhooks are left out",
            "    - longhaul-objects.yaml\n",
            "    # seen: `go build -o bin/manager cmd/main.go` builds it.",
            "    # seen: --x was left out",
            "    env:\n      MODE: fast\n",
            "    # check: seen: it listens at 6060 (/healthz), and no flag or variable sets that port",
            "    url: http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics\n    series: [go_goroutines]\n",
            "    # seen: 2 pods for one Basket; one that was deleted came back.\n    - {resource: pods/v1, by: owner, perParent: 2}",
            "  - {name: children-drift, afterLoad: 1s, children: pods/v1, share: 0.3}\n",
            "  witness: {kind: status}\n",
            "# seen: of all kinds it reacts to this one most: 12 requests, makes 2 pods, ",
            "# seen: /spec/size may change, and it notices.\n",
            "# seen: /spec/name may not change: is immutable.\n",
            "# check: seen: it looks for secrets `other`, which does not exist",
            "  with: [longhaul-with.yaml]\n",
            "# seen: with Shelf (shelves.shop.example.com/v1): nothing.\n",
            "restored: true",
            "resource: baskets, on: [update, patch], status: 409}",
        ],
    );
    assert!(!text.contains("    role:") && !text.contains("  install:") && !text.contains("    serves:"), "{text}");
    assert_eq!(unsaid(&text), Vec::<String>::new(), "{text}");
}

#[test]
fn the_only_namespace_of_a_program_is_written() {
    let only = Seen { only: Some("shop-system".to_owned()), ..observed() };
    let text = written(&borrowed(&fourth(MAIN)), &only);
    has(&text, &["  # seen: it looks at objects in this namespace alone.\n  namespace: shop-system\n"]);
    let crd = CRD.replace("Namespaced", "Cluster");
    let everywhere = written(&[("crd.yaml", &crd)], &only);
    assert!(!everywhere.contains("  namespace: "), "objects without a namespace: {everywhere}");
}

/// A definition from a dependency is kept beside the scenario, which names the file; a definition of the project is not
/// replaced.
#[test]
fn definitions_of_dependencies_lie_beside_the_scenario() {
    let folder = tree(&[("crd.yaml", CRD)]);
    let mut found = Found::read(folder.path(), None).unwrap();
    let of = |text: &str| Needed {
        from: "example.com/certs v1.0.0, deploy/crd.yaml".to_owned(),
        object: serde_saphyr::from_str(text).unwrap(),
    };
    let other = CRD.replace("basket", "cert").replace("Basket", "Cert");
    found.needed(&[of(CRD), of(&other)]);
    assert_eq!(found.crds.iter().map(|crd| crd.kind.as_str()).collect::<Vec<_>>(), ["Basket", "Cert"]);
    let [(name, kept)] = found.made.as_slice() else { panic!("{:?}", found.made) };
    assert!(kept.contains("# From example.com/certs v1.0.0") && !kept.contains("Basket"), "{kept}");
    let text = scenario(&found, &Seen::nothing(seen::Came::NotRun("no".to_owned())));
    assert!(text.contains(&format!("    - {name}\n")) || text.contains(&format!("{name}]")), "{text}");
}

/// A kind that the program does not watch is not churned, because churn of this kind would prove nothing.
#[test]
fn what_is_churned_is_followed() {
    let mut files = fourth(MAIN);
    files.push((
        "config/crd/bases/shelves.yaml",
        CRD.replace("basket", "shelf").replace("Basket", "Shelf").replace("shelfs", "shelves"),
    ));
    let text = |resource: &str| {
        let followed = vec![seen::Followed { resource: resource.to_owned(), is_watched: true }];
        written(&borrowed(&files), &Seen { followed, reactions: Vec::new(), ..observed() })
    };
    has(&text("shelves.shop.example.com"), &["resource: shelves.shop.example.com/v1"]);
    has(&text("baskets.shop.example.com"), &["resource: baskets.shop.example.com/v1"]);
    let none: Vec<_> = fourth(MAIN).into_iter().filter(|(path, _)| !path.contains("crd/bases")).collect();
    let followed = vec![seen::Followed { resource: "pods".to_owned(), is_watched: true }];
    let text = written(&borrowed(&none), &Seen { followed, reactions: Vec::new(), ..observed() });
    has(&text, &["churn: {resource: pods/v1, "]);
}

/// A program that reacted to no object may look at intervals: no object is deleted before it looks, and the drain is
/// longer than a usual interval.
#[test]
fn an_idle_program_gets_time_to_look() {
    let mut seen = observed();
    let [_, silent] = seen.reactions.as_slice() else { panic!() };
    seen.reactions = vec![seen::Reaction {
        kind: "Basket".to_owned(),
        churned: "baskets.shop.example.com/v1".to_owned(),
        children: Vec::new(),
        ..silent.clone()
    }];
    let text = written(&borrowed(&fourth(MAIN)), &seen);
    has(&text, &["phases: {warmUp: 10s, steady: 60s, drain: 90s}", "  mix: {update: 1}\n"]);
    let usual = written(&borrowed(&fourth(MAIN)), &observed());
    assert!(!usual.contains("mix:") && usual.contains("drain: 20s"), "{usual}");
}

/// If the program does not run, the scenario has the known facts, the program's last output and the next step.
#[test]
fn what_does_not_run_leaves_its_last_words() {
    let files = fourth(MAIN);
    let ended = |words: &str| Seen {
        run: vec!["./bin/manager".to_owned()],
        ..Seen::nothing(seen::Came::Ended(words.to_owned()))
    };
    let text = written(&borrowed(&files), &ended("one\nunable to load in-cluster configuration\u{1b}[2J"));
    has(
        &text,
        &[
            "# check: the program ended by itself. Its last output:\n#   one\n#   unable to load in-cluster configuration",
            "# check: next: it needs a cluster around it",
            "    # check: it was started with these arguments.\n    run:\n      - ./bin/manager\n",
            "  resource: baskets.shop.example.com/v1\n",
        ],
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(unsaid(&text), Vec::<String>::new(), "{text}");
}

/// Webhooks that the program does not serve are left out, and other webhooks of the same file go to a separate file.
#[test]
fn webhooks_that_are_not_served_are_left_out() {
    let other = HOOKS.replace("m.example.com", "o.example.com").replace("/mutate-", "/mutate-other-");
    let entry = other.split("webhooks:\n").nth(1).unwrap();
    let both = format!("{HOOKS}{entry}");
    let folder = tree(&[("crd.yaml", CRD), ("config/webhook/manifests.yaml", &both)]);
    let mut found = Found::read(folder.path(), None).unwrap();
    assert_eq!(found.hooks.len(), 2);
    found.leave_out(&[]);
    assert_eq!((found.hooks.len(), found.made.len()), (2, 0));
    found.leave_out(&["/mutate-other-shop-example-com-v1-basket".to_owned()]);
    assert_eq!(found.hooks.len(), 1);
    assert_eq!(found.hooks[0].file, Path::new(BUILT_HOOKS));
    let (_, text) = found.made.iter().find(|(name, _)| *name == BUILT_HOOKS).unwrap();
    assert!(text.contains("m.example.com") && !text.contains("o.example.com"), "{text}");
    assert!(found.doubts.iter().any(|doubt| doubt.contains("it does not serve /mutate-other-")), "{:?}", found.doubts);
}

/// If a project has several programs, the manifests near the chosen main package are used.
#[test]
fn manifests_beside_the_chosen_main_package_come_first() {
    let near = CRD.replace("baskets", "boxes").replace("Basket", "Box").replace("basket", "box");
    let hooks = HOOKS.replace("basket", "box");
    let folder = tree(&[
        ("config/crd/bases/a.yaml", CRD),
        ("config/webhook/manifests.yaml", HOOKS),
        ("boxes/manager/config/crd/bases/a.yaml", &near),
        ("boxes/manager/config/webhook/manifests.yaml", &hooks),
    ]);
    let kinds = |main: Option<&str>| {
        let found = Found::read(folder.path(), main.map(Path::new)).unwrap();
        (found.crds[0].kind.clone(), found.hooks[0].file.clone())
    };
    let webhooks = "config/webhook/manifests.yaml";
    assert_eq!(kinds(Some("./boxes/manager")), ("Box".to_owned(), Path::new("boxes/manager").join(webhooks)));
    assert_eq!(kinds(None), ("Basket".to_owned(), PathBuf::from(webhooks)));
}
