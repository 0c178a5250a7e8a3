package dev.longhaul;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.opentest4j.TestAbortedException;

/**
 * An API server that injects faults, for a test or for a class of tests, and a verdict by the ledger.
 *
 * <p>The extension starts the program {@code longhaul} and needs nothing else: no cluster, no etcd, no dependency but JUnit. An instance
 * field with {@code @RegisterExtension} gives each test its own API server, a static field one for the class.
 */
public final class Longhaul implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    /** Time limit of the start on a busy machine. Usually the API server is ready in 50 ms. */
    private static final long START_WITHIN_S = 30;
    /** Time limit of the end, in which Longhaul judges the ledger of a long test. */
    private static final long STOP_WITHIN_S = 60;
    /** Maximum number of lines of Longhaul's output that are kept. */
    private static final int LINES_MAX = 200;
    /** Beginning of the line that the API server writes when it is ready. */
    private static final String SERVED = "kube-apiserver: serving at ";
    /** Runs the API server until its input ends. So the API server ends with the test process, even after SIGKILL. */
    private static final String SCRIPT =
            "\"$TEST_ASSET_KUBE_APISERVER\" --secure-port=\"$1\" --cert-dir=\"$2\" --etcd-servers= </dev/null & "
                    + "cat >/dev/null; kill $!; wait $!";
    private static final String CERTIFICATE = "-----BEGIN CERTIFICATE-----";
    private static final int PASS = 0;
    private static final int UNDECIDED = 2;

    private final List<String> flags = new ArrayList<>();
    private final List<Fault> faults = new ArrayList<>();
    private Path records;
    private boolean allowUndecided;

    private final ArrayDeque<String> lines = new ArrayDeque<>();
    private Path folder;
    private String server;
    private Process process;
    private Thread reader;
    private CountDownLatch ready;
    private Verdict verdict;
    private boolean forTheClass;
    private boolean judged;

    /** The ledger's verdict. Codes: 0 pass, 1 fail, 2 undecided because a fault hit nothing; others are errors of Longhaul. */
    public record Verdict(int code, List<String> lines) {
        /** Whether the ledger found no error and every fault hit something. */
        public boolean passed() {
            return code == PASS;
        }

        /** The folder of the run record, with index.html and ledger.json; null if there is none. */
        public Path folder() {
            Path last = null;
            for (String line : lines) {
                if (line.endsWith("/index.html")) {
                    last = Path.of(line.replaceFirst("^longhaul:", "").strip()).getParent();
                }
            }
            return last;
        }

        @Override
        public String toString() {
            String word = switch (code) {
                case PASS -> "pass";
                case 1 -> "fail";
                case UNDECIDED -> "undecided";
                default -> "error of longhaul";
            };
            return "longhaul: " + word + " (exit code " + code + ")\n" + String.join("\n", lines);
        }
    }

    /** A fault with its keys, as in a scenario file. */
    public static final class Fault {
        private final StringBuilder text;

        private Fault(String name) {
            text = new StringBuilder("- name: " + name + "\n");
        }

        /** A fault by its name, such as watch-410. */
        public static Fault named(String name) {
            return new Fault(name);
        }

        /** Plays the fault at this time after the start. */
        public Fault at(Duration after) {
            return with("at", after.toMillis() + "ms");
        }

        /** Limits the fault to one resource, such as configmaps. */
        public Fault on(String resource) {
            return with("resource", resource);
        }

        /** Sets any other key of the fault; docs/faults.md lists the keys. The value is YAML. */
        public Fault with(String key, Object value) {
            text.append("  ").append(key).append(": ").append(value).append('\n');
            return this;
        }
    }

    /** Plays faults that are drawn at random from a seed. A correct client survives them. */
    public Longhaul chaos(long seed) {
        return flag("--chaos", Long.toUnsignedString(seed));
    }

    /** Adds a fault that the API server plays. */
    public Longhaul fault(Fault fault) {
        faults.add(fault);
        return this;
    }

    /** Delivers events of different kinds in another order than they were written. */
    public Longhaul order() {
        return flag("--order");
    }

    /** Lets the server answer reads from caches that are up to this many versions behind. */
    public Longhaul stale(int versions) {
        return flag("--stale", Integer.toString(versions));
    }

    /** Names the program under test by a part of its user agent. Faults then affect only requests of that program. */
    public Longhaul manager(String agent) {
        return flag("--manager-agent", agent);
    }

    /** Lets Deployments and other workloads become ready, each after this time. */
    public Longhaul workloads(Duration after) {
        return flag("--workloads", after.toMillis() + "ms");
    }

    /** Keeps run records in a folder. Without it and the variable LONGHAUL_RUNS, a temporary folder is kept after a failure. */
    public Longhaul records(Path folder) {
        records = folder;
        return this;
    }

    /** Lets a test pass even if a fault hits nothing. */
    public Longhaul allowUndecided() {
        allowUndecided = true;
        return this;
    }

    private Longhaul flag(String... words) {
        flags.addAll(List.of(words));
        return this;
    }

    /** The path of a kubeconfig for the API server, with all rights. */
    public Path kubeconfig() {
        return folder.resolve("kubeconfig.yaml");
    }

    /** The path of the certificate of the API server's authority. */
    public Path authority() {
        return folder.resolve("ca.crt");
    }

    /** The address of the API server, such as https://127.0.0.1:34567. */
    public String server() {
        return server;
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        forTheClass = true;
        start();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        if (!forTheClass) {
            start();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (!forTheClass) {
            judge();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        judge();
    }

    /**
     * Starts the API server with the program that the variable LONGHAUL names, or longhaul on PATH. If the program is missing, the
     * test is skipped, or fails if the variable CI is set.
     */
    public void start() {
        verdict = null;
        judged = false;
        lines.clear();
        try {
            launch();
            settle();
        } catch (IOException error) {
            throw new UncheckedIOException("longhaul: failed to start", error);
        }
    }

    private void launch() throws IOException {
        folder = Files.createTempDirectory("longhaul-");
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        server = "https://127.0.0.1:" + port;
        String program = variable("LONGHAUL", "longhaul");
        String runs = records == null ? variable("LONGHAUL_RUNS", folder.resolve("runs").toString()) : records.toString();
        List<String> words = new ArrayList<>(List.of(program, "envtest", "--judge", "--replays", "0", "--runs", runs));
        words.addAll(flags);
        if (!faults.isEmpty()) {
            StringBuilder list = new StringBuilder();
            faults.forEach(fault -> list.append(fault.text));
            words.addAll(List.of("--faults", Files.writeString(folder.resolve("faults.yaml"), list).toString()));
        }
        words.addAll(List.of("--", "sh", "-c", SCRIPT, "sh", Integer.toString(port), folder.toString()));
        try {
            process = new ProcessBuilder(words).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        } catch (IOException error) {
            remove();
            if (System.getenv("CI") != null) {
                throw error;
            }
            throw new TestAbortedException("skipped: needs longhaul (" + error.getMessage() + ")");
        }
        ready = new CountDownLatch(1);
        reader = new Thread(this::follow, "longhaul");
        reader.setDaemon(true);
        reader.start();
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    private void follow() {
        try (BufferedReader output = new BufferedReader(
                new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                synchronized (lines) {
                    lines.add(line);
                    if (lines.size() > LINES_MAX) {
                        lines.remove();
                    }
                }
                if (line.startsWith(SERVED)) {
                    ready.countDown();
                }
            }
        } catch (IOException closed) {
            // The program is killed.
        } finally {
            ready.countDown();
        }
    }

    /** Waits until the API server is ready, and writes the kubeconfig. */
    private void settle() throws IOException {
        try {
            ready.await(START_WITHIN_S, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        if (output().stream().noneMatch(line -> line.startsWith(SERVED))) {
            Verdict why = stop();
            remove();
            throw new IllegalStateException("the API server did not start: " + why);
        }
        String chain = Files.readString(folder.resolve("apiserver.crt"));
        // The authority is the last certificate of the chain.
        Files.writeString(authority(), chain.substring(chain.lastIndexOf(CERTIFICATE)));
        Files.writeString(kubeconfig(), """
                apiVersion: v1
                kind: Config
                clusters: [{name: longhaul, cluster: {server: "%s", certificate-authority: "%s"}}]
                users: [{name: longhaul, user: {}}]
                contexts: [{name: longhaul, context: {cluster: longhaul, user: longhaul}}]
                current-context: longhaul
                """.formatted(server, authority()));
    }

    private List<String> output() {
        synchronized (lines) {
            return List.copyOf(lines);
        }
    }

    /** Ends the API server and returns the verdict. After this call a bad verdict no longer fails the test by itself. */
    public Verdict stop() {
        judged = true;
        return end();
    }

    private Verdict end() {
        if (verdict != null) {
            return verdict;
        }
        try {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_WITHIN_S, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            int code = process.waitFor();
            reader.join();
            verdict = new Verdict(code, output());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
            verdict = new Verdict(-1, output());
        }
        return verdict;
    }

    private void judge() {
        if (process == null) {
            return;
        }
        boolean decided = judged;
        Verdict last = end();
        if (!decided && !last.passed() && !(allowUndecided && last.code() == UNDECIDED)) {
            throw new AssertionError(last.toString());
        }
        remove();
    }

    private void remove() {
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        } catch (IOException gone) {
            // Files that stay in a temporary folder do no harm.
        }
    }
}
