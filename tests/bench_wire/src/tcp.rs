//! The kernel's TCP over loopback.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;
use crate::subject::{Amount, message};

pub(crate) async fn rate(amount: Amount) -> Result<f64, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut sending = TcpStream::connect(listener.local_addr()?).await?;
    let (mut receiving, _) = listener.accept().await?;
    let received = tokio::spawn(async move {
        let mut block = vec![0; amount.message_bytes];
        let mut bytes = 0;
        loop {
            match receiving.read(&mut block).await? {
                0 => return Ok::<u64, std::io::Error>(bytes),
                read => bytes += read as u64,
            }
        }
    });
    let begun = Instant::now();
    let message = message(amount.message_bytes)?;
    for _ in 0..amount.messages {
        sending.write_all(&message).await?;
    }
    sending.shutdown().await?;
    if received.await?? != amount.bytes() {
        return Err("TCP lost data".into());
    }
    Ok(amount.mbit_per_s(begun.elapsed().as_secs_f64()))
}
