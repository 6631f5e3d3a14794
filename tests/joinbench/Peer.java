import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** mongo-java-server with its backend in memory, on the port that is given. */
class Peer {
    public static void main(String[] arguments) {
        new MongoServer(new MemoryBackend()).bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }
}
