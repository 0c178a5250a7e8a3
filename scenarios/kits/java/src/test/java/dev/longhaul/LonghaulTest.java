package dev.longhaul;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.opentest4j.TestAbortedException;

/** Tests of the kit itself. */
class LonghaulTest {
    private static final String PATH = "/api/v1/namespaces/default/configmaps";

    private static HttpClient client(Longhaul longhaul) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = Files.newInputStream(longhaul.authority())) {
            store.setCertificateEntry("longhaul", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return HttpClient.newBuilder().sslContext(context).build();
    }

    private static int call(HttpClient client, Longhaul longhaul, String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(longhaul.server() + path))
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        return client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode();
    }

    @Test
    void aPlaneWithoutFaultsPasses() throws Exception {
        Longhaul longhaul = new Longhaul();
        longhaul.start();
        assertEquals(200, call(client(longhaul), longhaul, "GET", "/api/v1/namespaces/default", ""));
        assertTrue(longhaul.stop().passed());
    }

    @Test
    void aFaultByNameAndKeysIsMet() throws Exception {
        Longhaul longhaul = new Longhaul().fault(
                Longhaul.Fault.named("http-error").on("configmaps").with("on", "list").with("status", 500).with("count", 1));
        longhaul.start();
        HttpClient client = client(longhaul);
        assertEquals(500, call(client, longhaul, "GET", PATH, ""));
        assertEquals(200, call(client, longhaul, "GET", PATH, ""));
        assertTrue(longhaul.stop().passed());
    }

    @Test
    void aFaultThatHitsNothingFailsItsTest() {
        Longhaul longhaul = new Longhaul().fault(Longhaul.Fault.named("watch-410").at(Duration.ofHours(1)));
        longhaul.beforeEach(null);
        String said = assertThrows(AssertionError.class, () -> longhaul.afterEach(null)).getMessage();
        assertTrue(said.contains("undecided") && said.contains("watch-410"), said);
        longhaul.allowUndecided().beforeEach(null);
        longhaul.afterEach(null);
    }

    @Test
    void aHotLoopFails() throws Exception {
        Longhaul longhaul = new Longhaul();
        longhaul.start();
        HttpClient client = client(longhaul);
        String body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"hot\"},\"data\":{\"n\":\"%d\"}}";
        call(client, longhaul, "POST", PATH, body.formatted(0));
        long began = System.nanoTime();
        for (int n = 1; n <= 60; n++) {
            assertEquals(200, call(client, longhaul, "PUT", PATH + "/hot", body.formatted(n)));
        }
        long tookMs = (System.nanoTime() - began) / 1_000_000;
        Longhaul.Verdict verdict = longhaul.stop();
        assumeTrue(tookMs <= 2000, "skipped: needs a machine with time for 60 writes within 2 s");
        assertTrue(verdict.code() == 1 && verdict.toString().contains("hot loop"), verdict.toString());
    }

    @Test
    void aMistakeInAFaultIsShown() {
        Longhaul longhaul = new Longhaul().fault(Longhaul.Fault.named("watch-411"));
        RuntimeException said = assertThrows(RuntimeException.class, longhaul::start);
        assumeTrue(!(said instanceof TestAbortedException), said.getMessage());
        assertTrue(said.getMessage().contains("watch-411"), said.getMessage());
    }
}
