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
 * An API server that plays faults, for a test or for a class of tests, and a verdict by the ledger.
 *
 * <p>It starts the program {@code longhaul} and needs nothing else: no cluster, no etcd, no dependency but JUnit. As an instance field
 * with {@code @RegisterExtension} it is new for each test, as a static one for the class.
 */
public final class Longhaul implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    /** For a busy machine: the API server is ready in 50 ms. */
    private static final long START_WITHIN_S = 30;
    /** For the ledger of a long test. */
    private static final long STOP_WITHIN_S = 60;
    /** Kept lines of Longhaul's output. */
    private static final int LINES_MAX = 200;
    /** Begins the line that the API server writes when it is ready. */
    private static final String SERVED = "kube-apiserver: serving at ";
    /** Serves until its input ends, so the API server ends with the test process, also after SIGKILL. */
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

    /** The result of the ledger: 0 pass, 1 fail, 2 undecided because a fault hit nothing; others are errors of Longhaul. */
    public record Verdict(int code, List<String> lines) {
        /** Whether all was right and every fault hit something. */
        public boolean passed() {
            return code == PASS;
        }

        /** The folder with index.html and ledger.json; null if there is none. */
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

    /** A fault with its keys. */
    public static final class Fault {
        private final StringBuilder text;

        private Fault(String name) {
            text = new StringBuilder("- name: " + name + "\n");
        }

        /** By its name, such as watch-410. */
        public static Fault named(String name) {
            return new Fault(name);
        }

        /** The time of the fault, counted from the start. */
        public Fault at(Duration after) {
            return with("at", after.toMillis() + "ms");
        }

        /** Narrows it to a resource, such as configmaps. */
        public Fault on(String resource) {
            return with("resource", resource);
        }

        /** Any other key, as docs/faults.md lists them; the value is YAML. */
        public Fault with(String key, Object value) {
            text.append("  ").append(key).append(": ").append(value).append('\n');
            return this;
        }
    }

    /** Draws faults from a seed. A correct client survives them. */
    public Longhaul chaos(long seed) {
        return flag("--chaos", Long.toUnsignedString(seed));
    }

    /** Plays a fault. */
    public Longhaul fault(Fault fault) {
        faults.add(fault);
        return this;
    }

    /** Delivers events of different kinds in another order. */
    public Longhaul order() {
        return flag("--order");
    }

    /** Lets caches stay up to so many versions behind. */
    public Longhaul stale(int versions) {
        return flag("--stale", Integer.toString(versions));
    }

    /** Names the program under test by a part of its user agent. Faults then touch its requests alone. */
    public Longhaul manager(String agent) {
        return flag("--manager-agent", agent);
    }

    /** Lets workloads become ready, each after so long. */
    public Longhaul workloads(Duration after) {
        return flag("--workloads", after.toMillis() + "ms");
    }

    /** Keeps the records in a folder. Without it, and without the variable LONGHAUL_RUNS, a temporary one is kept after a failure. */
    public Longhaul records(Path folder) {
        records = folder;
        return this;
    }

    /** Lets a test pass whose faults hit nothing. */
    public Longhaul allowUndecided() {
        allowUndecided = true;
        return this;
    }

    private Longhaul flag(String... words) {
        flags.addAll(List.of(words));
        return this;
    }

    /** The path of a kubeconfig with all rights. */
    public Path kubeconfig() {
        return folder.resolve("kubeconfig.yaml");
    }

    /** The path of the authority's certificate. */
    public Path authority() {
        return folder.resolve("ca.crt");
    }

    /** The address, such as https://127.0.0.1:34567. */
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
     * Starts it with the program of the variable LONGHAUL, or longhaul on PATH. If it is missing, the test is skipped, or fails where the
     * variable CI is set.
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

    /** Waits for the API server and writes the kubeconfig. */
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

    /** Ends the API server and returns the verdict. The test is not failed by it any more. */
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
            // What stays in a temporary folder harms nobody.
        }
    }
}
