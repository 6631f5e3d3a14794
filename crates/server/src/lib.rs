//! The listener: sockets, connections and threads.
