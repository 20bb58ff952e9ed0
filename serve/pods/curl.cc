#include "serve/pods/curl.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "fakes/kube/http/message/reason_phrase.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

absl::Status Unknown(const std::string& option) {
  return absl::InvalidArgumentError(
      fmt::format("curl: option {}: is not known to the curl of simulated pods\n", option));
}

absl::Status ReadUrl(std::string url, CurlCall& call) {
  if (const size_t scheme = url.find("://"); scheme != std::string::npos) {
    const std::string name = absl::AsciiStrToLower(url.substr(0, scheme));
    call.tls = name == "https";
    if (call.tls) call.port = 443;
    if (name != "http" && !call.tls) {
      return absl::InvalidArgumentError(
          fmt::format("curl: (1) Protocol \"{}\" not supported by the curl of simulated pods\n", name));
    }
    url.erase(0, scheme + 3);
  }
  url = url.substr(0, url.find('#'));
  const size_t path = url.find_first_of("/?");
  if (path != std::string::npos) {
    call.path = (url[path] == '?' ? "/" : "") + url.substr(path);
    url.erase(path);
  }
  const size_t colon = url.rfind(':');
  if (colon != std::string::npos && url.find(']', colon) == std::string::npos) {
    if (!absl::SimpleAtoi(url.substr(colon + 1), &call.port) || call.port < 1 || call.port > 65535) {
      return absl::InvalidArgumentError("curl: (3) URL using bad/illegal format or missing URL\n");
    }
    url.erase(colon);
  }
  if (url.empty()) return absl::InvalidArgumentError("curl: (3) URL using bad/illegal format or missing URL\n");
  call.host = url;
  return absl::OkStatus();
}

absl::Status ReadHeader(const std::string& text, CurlCall& call) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) return absl::OkStatus();  // curl sends none either
  std::string value = text.substr(colon + 1);
  absl::StripAsciiWhitespace(&value);
  const std::string name = absl::AsciiStrToLower(text.substr(0, colon));
  // "Accept:" takes back what curl would say itself.
  if (value.empty()) return call.headers.erase(name), absl::OkStatus();
  call.headers[name] = value;
  return absl::OkStatus();
}

// --resolve HOST:PORT:ADDRESS
struct Resolve {
  std::string host, address;
  int port = 0;
};

absl::StatusOr<Resolve> ReadResolve(const std::string& text) {
  const size_t port = text.find(':'), address = port == text.npos ? text.npos : text.find(':', port + 1);
  Resolve out;
  if (address != text.npos) {
    out.host = text.substr(0, port);
    out.address = text.substr(address + 1);
  }
  if (out.address.empty() || !absl::SimpleAtoi(text.substr(port + 1, address - port - 1), &out.port)) {
    return absl::InvalidArgumentError(fmt::format("curl: (49) Couldn't parse CURLOPT_RESOLVE entry '{}'\n", text));
  }
  if (out.address.starts_with('[') && out.address.ends_with(']'))
    out.address = out.address.substr(1, out.address.size() - 2);
  return out;
}

// Options that change nothing here; true: a value follows.
const std::map<std::string, bool>& WithoutEffect() {
  static const auto* const kOptions = new std::map<std::string, bool>{
      {"--connect-timeout", true},    {"-L", false}, {"--location", false}, {"--http1.1", false},
      {"--no-progress-meter", false}, {"-4", false}, {"--ipv4", false},     {"--retry", true}};
  return *kOptions;
}

constexpr double kMostSeconds = 1e6;
constexpr char kUserAgent[] = "curl/8.5.0";

}  // namespace

absl::StatusOr<CurlCall> ReadCurl(const std::vector<std::string>& argv) {
  CurlCall call;
  std::string url;
  std::vector<Resolve> resolves;
  call.headers = {{"accept", "*/*"}, {"user-agent", kUserAgent}};
  // "-sS" is "-s -S"; "-ofile" is "-o file".
  std::vector<std::string> words;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word.size() < 3 || word[0] != '-' || word[1] == '-') {
      words.push_back(word);
      continue;
    }
    for (size_t k = 1; k < word.size(); ++k) {
      words.push_back(std::string("-") + word[k]);
      if (std::string_view("HXowmdAD").find(word[k]) != std::string_view::npos && k + 1 < word.size()) {
        words.push_back(word.substr(k + 1));
        break;
      }
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> std::string { return i + 1 < words.size() ? words[++i] : std::string(); };
    if (word.empty() || word[0] != '-') {
      url = word;
    } else if (word == "-s" || word == "--silent") {
      call.silent = true;
    } else if (word == "-S" || word == "--show-error") {
      call.show_errors = true;
    } else if (word == "-i" || word == "--include") {
      call.include_head = true;
    } else if (word == "-I" || word == "--head") {
      call.only_head = true;
      call.method = "HEAD";
    } else if (word == "-f" || word == "--fail") {
      call.fail = true;
    } else if (word == "-o" || word == "--output") {
      call.to_nowhere = true;
      value();
    } else if (word == "-D" || word == "--dump-header") {
      call.dump_head = value() == "-";
    } else if (word == "-w" || word == "--write-out") {
      call.write_out = value();
    } else if (word == "-X" || word == "--request") {
      call.method = value();
    } else if (word == "-d" || word == "--data") {
      call.body_bytes += static_cast<int64_t>(value().size());
      if (call.method == "GET") call.method = "POST";
      call.headers.try_emplace("content-type", "application/x-www-form-urlencoded");
    } else if (word == "-H" || word == "--header") {
      if (absl::Status status = ReadHeader(value(), call); !status.ok()) return status;
    } else if (word == "-A" || word == "--user-agent") {
      call.headers["user-agent"] = value();
    } else if (word == "-v" || word == "--verbose") {
      call.verbose = true;
    } else if (word == "-k" || word == "--insecure") {
      call.insecure = true;
    } else if (word == "--resolve") {
      absl::StatusOr<Resolve> resolve = ReadResolve(value());
      if (!resolve.ok()) return resolve.status();
      resolves.push_back(*std::move(resolve));
    } else if (word == "--cacert" || word == "--cert" || word == "-E" || word == "--key") {
      // Simulated containers have no files.
      return absl::InvalidArgumentError(
          word == "--cacert"
              ? fmt::format("curl: (77) error setting certificate verify locations:  CAfile: {}\n", value())
              : fmt::format("curl: (58) could not load {}\n", value()));
    } else if (word == "--url") {
      url = value();
    } else if (word == "-0" || word == "--http1.0") {
      call.protocol = "http1.0";
    } else if (word == "--http2-prior-knowledge") {
      call.protocol = "http2";
    } else if (word == "-m" || word == "--max-time") {
      const std::string text = value();
      double seconds = 0;
      if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0) || seconds > kMostSeconds) {
        return absl::InvalidArgumentError(
            fmt::format("curl: option {}: expected a proper numerical parameter\n", word));
      }
      call.max_time = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    } else if (const auto it = WithoutEffect().find(word); it != WithoutEffect().end()) {
      if (it->second) value();
    } else {
      return Unknown(word);
    }
  }
  if (url.empty()) {
    return absl::InvalidArgumentError("curl: try 'curl --help' or 'curl --manual' for more information\n");
  }
  if (absl::Status status = ReadUrl(std::move(url), call); !status.ok()) return status;
  for (const Resolve& resolve : resolves) {
    if (resolve.host == call.host && resolve.port == call.port) call.connect_to = resolve.address;
  }
  return call;
}

namespace {

std::string HeadOf(const CurlCall& call, const CurlAnswer& answer) {
  std::string out = call.protocol == "http2"
                        ? fmt::format("HTTP/2 {} \r\n", answer.code)
                        : fmt::format("HTTP/1.1 {} {}\r\n", answer.code, fakekube::http::ReasonPhrase(answer.code));
  const std::vector<std::string> lines = absl::StrSplit(std::string(answer.headers), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) out += line + "\r\n";
  return out + "\r\n";
}

// What -v shows of both heads, each line behind a sign.
std::string Exchange(const CurlCall& call, const CurlAnswer& answer) {
  const bool http2 = call.protocol == "http2", usual = call.port == (call.tls ? 443 : 80);
  const auto host = call.headers.find("host");
  std::string out = fmt::format("> {} {} {}\r\n> Host: {}\r\n", call.method, call.path,
                                http2                        ? "HTTP/2"
                                : call.protocol == "http1.0" ? "HTTP/1.0"
                                                             : "HTTP/1.1",
                                host != call.headers.end() ? host->second
                                : usual                    ? call.host
                                                           : fmt::format("{}:{}", call.host, call.port));
  for (const auto& [name, value] : call.headers) {
    if (name != "host") out += fmt::format("> {}: {}\r\n", name, value);
  }
  out += "> \r\n";
  if (answer.code == 0) return out;
  const std::vector<std::string> lines = absl::StrSplit(HeadOf(call, answer), "\r\n", absl::SkipEmpty());
  for (const std::string& line : lines) out += fmt::format("< {}\r\n", line);
  return out + "< \r\n";
}

}  // namespace

CommandResult CurlResult(const CurlCall& call, const CurlAnswer& answer) {
  CommandResult out;
  const auto fail = [&](int exit_code, const std::string& text) {
    out.exit_code = exit_code;
    if (!call.silent || call.show_errors) out.err += fmt::format("curl: ({}) {}\n", exit_code, text);
  };
  const bool connected = answer.code != 0 || (answer.why != "no such host" && answer.why != "TLS handshake failed" &&
                                              answer.why.find("refused") == answer.why.npos);
  if (call.verbose && connected) out.err += Exchange(call, answer);
  if (answer.code == 0) {
    if (answer.why == "client timeout") {
      fail(28, fmt::format("Operation timed out after {} milliseconds with 0 bytes received", call.max_time / 1ms));
    } else if (answer.why == "no such host") {
      fail(6, "Could not resolve host: " + call.host);
    } else if (answer.why.find("refused") != std::string_view::npos ||
               answer.why.find("nobody listens") != std::string_view::npos) {
      fail(7, fmt::format("Failed to connect to {} port {}: Connection refused", call.host, call.port));
    } else if (answer.why == "TLS handshake failed" && answer.closer.find("VERIFY_FAILED") != answer.closer.npos) {
      fail(60,
           answer.closer.find("SAN") == answer.closer.npos
               ? "SSL certificate problem: unable to get local issuer certificate"
               : fmt::format("SSL: no alternative certificate subject name matches target host name '{}'", call.host));
    } else if (answer.why == "TLS handshake failed") {
      fail(35, fmt::format("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to {}:{}", call.host, call.port));
    } else if (call.tls && answer.why == "connection reset" && !answer.closer.empty()) {
      // A proxy on the way wanted no such client, and heard no more than its hello.
      fail(35,
           fmt::format("OpenSSL SSL_connect: Connection reset by peer in connection to {}:{}", call.host, call.port));
    } else {
      fail(56, "Recv failure: Connection reset by peer");
    }
  } else if (call.fail && answer.code >= 400) {
    if (call.dump_head) out.out += HeadOf(call, answer);
    fail(22, fmt::format("The requested URL returned error: {}", answer.code));
  } else if (call.to_nowhere) {
    if (call.dump_head) out.out += HeadOf(call, answer);
  } else {
    if (call.dump_head) out.out += HeadOf(call, answer);
    if (call.include_head || call.only_head) out.out += HeadOf(call, answer);
    if (!call.only_head) out.out += answer.body;
  }
  out.out += absl::StrReplaceAll(call.write_out, {{"%{http_code}", fmt::format("{:03}", answer.code)},
                                                  {"%{response_code}", fmt::format("{:03}", answer.code)},
                                                  {"%{time_total}", fmt::format("{:.6f}", answer.seconds)},
                                                  {"\\n", "\n"},
                                                  {"\\t", "\t"}});
  return out;
}

}  // namespace wavetank::serve
