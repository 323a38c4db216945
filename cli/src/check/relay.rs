//! A relay on a loopback port that cuts a connection before a request arrives or before its answer returns.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The longest head of a request to connect.
const MOST_HEAD_BYTES: usize = 8 * 1024;
/// The bytes that pass at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// The moment when a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// When the next bytes of a request come: the service gets none of them.
    BeforeRequest,
    /// When the first bytes of the next answer come: the service has carried the request out.
    BeforeAnswer,
}

/// Where the relay sends bytes.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// To this host and port.
    Direct(String),
    /// Where the request `CONNECT` of each connection says, as HTTP proxies do for TLS.
    Connect,
}

/// The cut that the next request meets.
type Plan = Arc<Mutex<Option<Cut>>>;

/// A relay. It ends when it is dropped.
pub(super) struct Relay {
    address: SocketAddr,
    plan: Plan,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Listens on a free loopback port.
    pub(super) async fn start(route: Route) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let plan = Plan::default();
        let accepting = tokio::spawn(accept(listener, route, Arc::clone(&plan)));
        Ok(Self { address, plan, accepting })
    }

    /// Returns the address that it listens on.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Plans the cut of the next request, or none.
    pub(super) fn set_cut(&self, cut: Option<Cut>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = cut;
    }

    /// Returns whether the planned cut has not happened yet.
    pub(super) fn is_cut_left(&self) -> bool {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, route: Route, plan: Plan) {
    while let Ok((client, _)) = listener.accept().await {
        let (route, plan) = (route.clone(), Arc::clone(&plan));
        // A connection that fails is closed on both sides, which the client sees.
        tokio::spawn(async move { serve(client, route, &plan).await });
    }
}

async fn serve(mut client: TcpStream, route: Route, plan: &Mutex<Option<Cut>>) -> io::Result<()> {
    let server = match route {
        Route::Direct(target) => TcpStream::connect(target).await?,
        Route::Connect => {
            let server = TcpStream::connect(target_of(&mut client).await?).await?;
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server
        }
    };
    relay(client, server, plan).await
}

/// Reads the request `CONNECT host:port`, and returns host and port.
async fn target_of(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MOST_HEAD_BYTES {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    target.map(str::to_owned).ok_or_else(|| io::Error::other("expected a request to connect"))
}

/// Passes bytes both ways until a side ends or the planned cut comes.
async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    plan: &Mutex<Option<Cut>>,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let (mut up, mut down) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    let mut is_answer_cut = false;
    loop {
        tokio::select! {
            read = from_client.read(&mut up) => {
                let read = read?;
                // A guard must not be held across an await.
                let cut = plan.lock().unwrap_or_else(PoisonError::into_inner).take();
                if read == 0 || cut == Some(Cut::BeforeRequest) {
                    return Ok(());
                }
                is_answer_cut |= cut == Some(Cut::BeforeAnswer);
                to_server.write_all(up.get(..read).unwrap_or_default()).await?;
            }
            read = from_server.read(&mut down) => {
                let read = read?;
                if read == 0 || is_answer_cut {
                    return Ok(());
                }
                to_client.write_all(down.get(..read).unwrap_or_default()).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each byte with the next one.
    async fn start_server() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::<Mutex<Vec<u8>>>::default();
        let seen = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    while let Ok(byte) = client.read_u8().await {
                        seen.lock().unwrap().push(byte);
                        client.write_u8(byte + 1).await.unwrap();
                    }
                });
            }
        });
        (address, got)
    }

    async fn ask(stream: &mut TcpStream, byte: u8) -> Option<u8> {
        stream.write_u8(byte).await.ok()?;
        stream.read_u8().await.ok()
    }

    #[tokio::test]
    async fn connections_are_cut_where_it_is_planned() {
        let (address, got) = start_server().await;
        let relay = Relay::start(Route::Direct(address.to_string())).await.unwrap();
        for (cut, arrives) in [(Cut::BeforeRequest, false), (Cut::BeforeAnswer, true)] {
            let mut stream = TcpStream::connect(relay.address()).await.unwrap();
            assert_eq!(ask(&mut stream, 1).await, Some(2));
            relay.set_cut(Some(cut));
            assert!(relay.is_cut_left());
            got.lock().unwrap().clear();
            assert_eq!(ask(&mut stream, 5).await, None, "{cut:?}");
            assert!(!relay.is_cut_left());
            assert_eq!(got.lock().unwrap().contains(&5), arrives, "{cut:?}");
            // The next connection is whole again.
            let mut stream = TcpStream::connect(relay.address()).await.unwrap();
            assert_eq!(ask(&mut stream, 7).await, Some(8));
        }
    }

    #[tokio::test]
    async fn a_proxy_connects_where_it_is_told() {
        let (address, _) = start_server().await;
        let relay = Relay::start(Route::Connect).await.unwrap();
        let mut stream = TcpStream::connect(relay.address()).await.unwrap();
        let head = format!("CONNECT {address} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 39];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 Connection established\r\n\r\n");
        assert_eq!(ask(&mut stream, 1).await, Some(2));

        let mut other = TcpStream::connect(relay.address()).await.unwrap();
        other.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert!(other.read_u8().await.is_err(), "nothing but a tunnel");
    }
}
