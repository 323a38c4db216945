//! Drives a browser through `chromedriver`.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use serde_json::{Value, json};

/// A driver of a browser, which ends with it.
pub(crate) struct Driver {
    process: Child,
    port: u16,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Driver {
    /// Starts the program, which is `chromedriver` or a path to it.
    pub(crate) fn start(program: &str) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new(program)
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let driver = Self { process, port };
        for _ in 0..200 {
            if driver.call("GET", "/status", &Value::Null).is_ok() {
                return Ok(driver);
            }
            sleep(Duration::from_millis(50));
        }
        Err("the driver does not answer".into())
    }

    /// Sends a command, and returns the value of the answer.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if let Some(found) = line.strip_prefix("content-length:") {
                length = found.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        let answer: Value = serde_json::from_slice(&answer)?;
        match &answer["value"]["error"] {
            Value::String(error) => Err(format!("{error}: {}", answer["value"]["message"]).into()),
            _ => Ok(answer["value"].clone()),
        }
    }

    /// Opens a browser with a screen of this width, and a preference for `light` or `dark`.
    pub(crate) fn open_screen(
        &self,
        width: u32,
        scheme: &str,
    ) -> Result<Screen<'_>, Box<dyn Error>> {
        let phone = width < 500;
        let screen = json!({ "width": width, "height": 800, "pixelRatio": 1, "touch": phone, "mobile": phone });
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
            "mobileEmulation": { "deviceMetrics": screen },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } } });
        let session = self.call("POST", "/session", &wanted)?;
        let id = session["sessionId"].as_str().ok_or("a session without an id")?;
        let screen = Screen { driver: self, session: format!("/session/{id}") };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        screen.devtools("Emulation.setEmulatedMedia", &media)?;
        Ok(screen)
    }
}

/// A browser with a screen of one width.
pub(crate) struct Screen<'d> {
    driver: &'d Driver,
    session: String,
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ = self.driver.call("DELETE", &self.session, &Value::Null);
    }
}

impl Screen<'_> {
    /// Sends a command of the developer tools.
    pub(crate) fn devtools(&self, command: &str, params: &Value) -> Result<Value, Box<dyn Error>> {
        let path = format!("{}/goog/cdp/execute", self.session);
        self.driver.call("POST", &path, &json!({ "cmd": command, "params": params }))
    }

    /// Opens a page and runs a script that returns a list.
    pub(crate) fn measure(
        &self,
        page: &Path,
        script: &str,
        arguments: &Value,
    ) -> Result<Vec<Value>, Box<dyn Error>> {
        let address = json!({ "url": format!("file://{}", page.display()) });
        self.driver.call("POST", &format!("{}/url", self.session), &address)?;
        let script = json!({ "script": script, "args": arguments });
        let found = self.driver.call("POST", &format!("{}/execute/sync", self.session), &script)?;
        found.as_array().cloned().ok_or_else(|| format!("not a list: {found}").into())
    }
}
