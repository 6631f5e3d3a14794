//! `hostInfo`: the machine that the server runs on.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::host::{host_name, kernel_version, os_name, proc_number, read};
use crate::frame::service::now_ms;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get()) as i32;
    let memory_mb = proc_number("/proc/meminfo", "MemTotal:") / 1024;
    {
        let mut system = reply.document("system");
        system.append("currentTime", Value::Date(now_ms()));
        system.append("hostname", host_name().as_str());
        system.append("cpuAddrSize", usize::BITS as i32);
        system.append("memSizeMB", memory_mb);
        system.append("memLimitMB", memory_mb);
        system.append("numCores", cores);
        system.append("numCoresAvailableToProcess", cores);
        system.append("numPhysicalCores", cores);
        system.append("numCpuSockets", 1);
        system.append("cpuArch", std::env::consts::ARCH);
        system.append("numaEnabled", false);
        system.append("numNumaNodes", 1);
    }
    {
        let mut os = reply.document("os");
        os.append("type", if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS });
        os.append("name", os_name().as_str());
        os.append("version", kernel_version().as_str());
    }
    let mut extra = reply.document("extra");
    extra.append("versionString", read("/proc/version").trim());
    let page_bytes = match proc_number("/proc/self/smaps", "KernelPageSize:") {
        0 => 4096,
        kb => kb * 1024,
    };
    extra.append("pageSize", page_bytes);
    extra.append("numPages", memory_mb * 1024 * 1024 / page_bytes);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    extra.append("maxOpenFiles", files.unwrap_or(u64::MAX).min(i64::MAX as u64) as i64);
    extra.append("kernelVersion", kernel_version().as_str());
    Ok(())
}
