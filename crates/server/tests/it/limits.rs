//! The limit on connections, and what refused ones leave behind.

use crate::{Client, code, eventually, ok, ping, server};
use quire_server::{Endpoint, Listeners, ServerOptions, StartError};

#[test]
fn a_full_server_says_so() {
    let options = ServerOptions { connections_max: 3, ..ServerOptions::default() };
    let (server, address) = server(options);
    let mut inside: Vec<Client> = (0..3).map(|_| Client::new(address)).collect();
    inside.iter_mut().for_each(|client| assert!(ok(&client.run(ping()))));
    let mut outside = Client::new(address);
    let reply = outside.run(ping());
    assert_eq!(code(&reply), 462);
    assert!(
        reply.get("errmsg").unwrap().as_str().unwrap().contains("too many open connections: 3")
    );
    assert!(outside.is_closed());
    assert_eq!(server.service().metrics.network.connections_rejected.get(), 1);
    inside.pop();
    eventually("there is room again", || server.connections() == 2);
    assert!(ok(&Client::new(address).run(ping())));
}

#[test]
fn a_port_is_had_once() {
    let (_server, address) = server(ServerOptions::default());
    let again = Listeners::bind(&[Endpoint::Tcp(address)]);
    assert!(matches!(again, Err(StartError::AddressInUse(_))));
}

#[cfg(target_os = "linux")]
#[test]
fn connections_leave_no_thread_and_no_file_behind() {
    // The names of the threads, because other tests run their own servers meanwhile.
    let (server, address) = server(ServerOptions::default());
    for _ in 0..1000 {
        drop(std::net::TcpStream::connect(address).unwrap());
    }
    eventually("everybody has left", || {
        server.connections() == 0
            && server.service().metrics.network.connections_total.get() == 1000
    });
    eventually("the high connection threads are gone", || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("conn9")).count() < 3
    });
}
