import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's tools by request, several at a time, each with its own standard streams. A request
 * is a connection to the port that is printed first. The process ends when its standard input does.
 *
 * A tool's own jar is loaded anew for each run, because tools count in static fields. Janino, which compiles this
 * file, has neither lambdas nor inferred type arguments.
 */
public class ToolHost {
    private static final InheritableThreadLocal CURRENT = new InheritableThreadLocal();

    public static void main(String[] args) throws Exception {
        InputStream own = System.in;
        final ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        System.out.println(server.getLocalPort());
        System.setIn(new InputOfRun());
        System.setOut(new PrintStream(new OutputOfRun(false), true));
        System.setErr(new PrintStream(new OutputOfRun(true), true));
        Exit.Procedure end = new Exit.Procedure() {
            public void execute(int status, String message) {
                Run run = (Run) CURRENT.get();
                run.end(status);
                throw new Ended();
            }
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder(new Exit.ShutdownHookAdder() {
            public void addShutdownHook(String name, Runnable hook) {
                Run run = (Run) CURRENT.get();
                run.hooks.add(hook);
            }
        });
        Thread accepting = new Thread() {
            public void run() {
                try {
                    while (true) {
                        new Answer(server.accept()).start();
                    }
                } catch (IOException problem) {
                    Runtime.getRuntime().halt(1);
                }
            }
        };
        accepting.setDaemon(true);
        accepting.start();
        while (own.read() >= 0) {
        }
        Runtime.getRuntime().halt(0);
    }

    /** Unwinds the stack of a tool that has called exit; what it prints on the way is not part of its output. */
    private static class Ended extends Error {
    }

    /** A run of a tool. `status`: null until it ends. */
    private static class Run {
        final InputStream in;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List hooks = new ArrayList();
        Integer status;

        Run(byte[] stdin) {
            in = new ByteArrayInputStream(stdin);
        }

        /** As Java does: the shutdown hooks run, then the output ends. Only the first call counts. */
        void end(int code) {
            while (status == null && !hooks.isEmpty()) {
                ((Runnable) hooks.remove(0)).run();
            }
            synchronized (this) {
                if (status == null) {
                    status = Integer.valueOf(code);
                }
            }
        }

        synchronized void write(boolean isError, byte[] data, int from, int size) {
            if (status == null) {
                (isError ? err : out).write(data, from, size);
            }
        }
    }

    private static class InputOfRun extends InputStream {
        public int read() throws IOException {
            return ((Run) CURRENT.get()).in.read();
        }

        public int read(byte[] data, int from, int size) throws IOException {
            return ((Run) CURRENT.get()).in.read(data, from, size);
        }
    }

    private static class OutputOfRun extends OutputStream {
        private final boolean isError;

        OutputOfRun(boolean isError) {
            this.isError = isError;
        }

        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        public void write(byte[] data, int from, int size) {
            ((Run) CURRENT.get()).write(isError, data, from, size);
        }
    }

    /** Prefers its own jar. */
    private static class OwnJarFirst extends URLClassLoader {
        OwnJarFirst(URL jar, ClassLoader others) {
            super(new URL[] {jar}, others);
        }

        protected Class loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class found = findLoadedClass(name);
                if (found == null) {
                    try {
                        found = findClass(name);
                    } catch (ClassNotFoundException elsewhere) {
                        found = super.loadClass(name, resolve);
                    }
                }
                return found;
            }
        }
    }

    /** Answers one request: the number of words, the main class, its arguments, the standard input. */
    private static class Answer extends Thread {
        private final Socket socket;

        Answer(Socket socket) {
            this.socket = socket;
        }

        public void run() {
            try {
                DataInputStream request = new DataInputStream(socket.getInputStream());
                String[] words = new String[request.readInt()];
                for (int i = 0; i < words.length; i++) {
                    words[i] = new String(bytes(request), "UTF-8");
                }
                Run run = new Run(bytes(request));
                CURRENT.set(run);
                execute(run, words);
                DataOutputStream response = new DataOutputStream(socket.getOutputStream());
                response.writeInt(run.status.intValue());
                write(response, run.out.toByteArray());
                write(response, run.err.toByteArray());
                socket.close();
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1);
            }
        }

        private static byte[] bytes(DataInputStream from) throws IOException {
            byte[] found = new byte[from.readInt()];
            from.readFully(found);
            return found;
        }

        private static void write(DataOutputStream to, byte[] data) throws IOException {
            to.writeInt(data.length);
            to.write(data);
        }

        private void execute(Run run, String[] words) {
            String[] args = new String[words.length - 1];
            System.arraycopy(words, 1, args, 0, args.length);
            try {
                Class shared = Class.forName(words[0]);
                URL jar = shared.getProtectionDomain().getCodeSource().getLocation();
                ClassLoader loader = new OwnJarFirst(jar, shared.getClassLoader());
                setContextClassLoader(loader);
                loader.loadClass(words[0]).getMethod("main", new Class[] {String[].class}).invoke(null, new Object[] {args});
                run.end(0);
            } catch (InvocationTargetException raised) {
                if (run.status == null) {
                    System.err.print("Exception in thread \"main\" ");
                    raised.getCause().printStackTrace();
                    run.end(1);
                }
            } catch (Throwable problem) {
                problem.printStackTrace();
                run.end(1);
            }
        }
    }
}
