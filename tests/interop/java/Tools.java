import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM, because starting one costs
 * seconds. Each line of input is a class, its standard input and its arguments, in base64, divided
 * by spaces ("-" is empty); each line of output is the exit code, standard output and error.
 */
public class Tools {
    /** Ends a tool. Some catch it and ask to exit anew: what they asked for first counts. */
    static class Exited extends RuntimeException {}

    static Integer exitCode;

    static void exit(int code, String message) {
        exitCode = exitCode == null ? Integer.valueOf(code) : exitCode;
        throw new Exited();
    }

    static String decode(String field) {
        return field.equals("-") ? "" : new String(Base64.getDecoder().decode(field));
    }

    static String encode(ByteArrayOutputStream bytes) {
        return bytes.size() == 0 ? "-" : Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        List<Runnable> hooks = new ArrayList<>();
        Exit.setExitProcedure(Tools::exit);
        Exit.setHaltProcedure(Tools::exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        String line;
        while ((line = lines.readLine()) != null) {
            String[] fields = Arrays.stream(line.split(" ")).map(Tools::decode).toArray(String[]::new);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            PrintStream stdout = new PrintStream(out, true);
            PrintStream stderr = new PrintStream(err, true);
            System.setIn(new ByteArrayInputStream(fields[1].getBytes()));
            System.setOut(stdout);
            System.setErr(stderr);
            int code = run(fields, stderr);
            hooks.forEach(Runnable::run);
            hooks.clear();
            stdout.flush();
            stderr.flush();
            answers.println(code + " " + encode(out) + " " + encode(err));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static int run(String[] fields, PrintStream stderr) {
        String[] arguments = Arrays.copyOfRange(fields, 2, fields.length);
        exitCode = null;
        try {
            Class.forName(fields[0]).getMethod("main", String[].class)
                .invoke(null, (Object) arguments);
            return exitCode == null ? 0 : exitCode;
        } catch (InvocationTargetException failure) {
            if (exitCode != null) {
                return exitCode;
            }
            failure.getCause().printStackTrace(stderr);
            return 1;
        } catch (ReflectiveOperationException failure) {
            failure.printStackTrace(stderr);
            return 1;
        }
    }
}
