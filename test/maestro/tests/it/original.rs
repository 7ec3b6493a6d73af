//! With the original: its agent at our server, our agent at its server, its source client at our server.

mod agent;
mod server;
mod source;
