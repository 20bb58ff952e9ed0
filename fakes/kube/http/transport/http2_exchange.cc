#include "fakes/kube/http/transport/http2_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/transport/gzip.h"
#include "fakes/kube/http/transport/request_head.h"

namespace wavetank::fakekube::http {
namespace {

using boost::system::error_code;

constexpr uint64_t kOnlyWatch = 1;

// What a message of HTTP/2 must not say (RFC 9113, 8.2.2).
bool OfHttp1(std::string_view name) { return name == "connection" || name == "transfer-encoding" || name == "upgrade"; }

nghttp2_nv Pair(const std::string& name, const std::string& value) {
  const auto bytes = [](const std::string& text) {
    return const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

ssize_t ReadExchange(nghttp2_session*, int32_t, uint8_t* out, size_t size, uint32_t* flags, nghttp2_data_source* source,
                     void*) {
  return static_cast<Http2Exchange*>(source->ptr)->Fill(out, size, flags);
}

}  // namespace

Http2Exchange::Http2Exchange(std::shared_ptr<ExchangeHost> host, int32_t stream, boost::asio::io_context& io)
    : host_(std::move(host)),
      server_(host_->server()),
      stream_(stream),
      deadline_(io),
      bookmark_timer_(io),
      end_timer_(io) {
  ++server_->exchanges();
}

Http2Exchange::~Http2Exchange() = default;

// From its first byte on the request has one deadline, however slowly it comes.
void Http2Exchange::Begin() {
  deadline_.expires_after(Real(server_->options().request_timeout));
  deadline_.async_wait([weak = weak_from_this()](error_code error) {
    const std::shared_ptr<Http2Exchange> self = weak.lock();
    if (!error && self != nullptr && !self->request_ended_) self->Reset(NGHTTP2_CANCEL);
  });
}

void Http2Exchange::OnHeader(std::string_view name, std::string_view value) {
  constexpr size_t kOverhead = 32;  // of a field (RFC 9113, 6.5.2)
  header_bytes_ += name.size() + value.size() + kOverhead;
  if (header_bytes_ > server_->options().max_header_bytes) return;
  headers_[std::string(name)].emplace_back(value);
}

void Http2Exchange::OnHeadersEnd() {
  if (header_bytes_ > server_->options().max_header_bytes)
    return Answer(Failure(431, "BadRequest", "the request's headers are too large"));
  if (Header("expect") == "100-continue" && host_ != nullptr) {
    const std::string name = ":status", value = "100";
    const nghttp2_nv head = Pair(name, value);
    nghttp2_submit_headers(host_->session(), NGHTTP2_FLAG_NONE, stream_, nullptr, &head, 1, nullptr);
  }
}

void Http2Exchange::OnBody(std::string_view bytes) {
  if (answered_) return;  // whatever still comes of what was refused
  const size_t most = server_->options().max_body_bytes;
  if (body_.size() + bytes.size() > most) {
    body_.clear();
    return Answer(Failure(413, "RequestEntityTooLarge", fmt::format("Request entity too large: limit is {}", most)));
  }
  body_ += bytes;
}

void Http2Exchange::OnRequestEnd() {
  request_ended_ = true;
  deadline_.cancel();
  if (answered_ || host_ == nullptr) return;
  const std::string target = Header(":path");
  if (target.empty() || target[0] != '/') return Answer(BadRequest("the request names no path"));
  Request request = ReadHead(Header(":method"), target, headers_, host_->client());
  request.body = std::move(body_);
  asked_ = true;
  server_->Ask(id_, kOnlyWatch, shared_from_this(), host_->handler(), std::move(request));
}

std::string Http2Exchange::Header(std::string_view name) const {
  const auto it = headers_.find(name);
  return it == headers_.end() ? "" : it->second.front();
}

void Http2Exchange::Deliver(Response response, bool watches) {
  if (host_ == nullptr) return;
  if (response.hang_up) return std::shared_ptr<ExchangeHost>(host_)->Close();
  if (response.delay > Duration::zero()) {
    end_timer_.expires_after(Real(std::exchange(response.delay, Duration{})));
    auto held = std::make_shared<Response>(std::move(response));
    end_timer_.async_wait([self = shared_from_this(), held, watches](error_code error) {
      if (!error) self->Deliver(std::move(*held), watches);
    });
    return;
  }
  if (watches) return StartWatch(std::move(response));
  Answer(std::move(response));
}

void Http2Exchange::Answer(Response response) {
  if (host_ == nullptr || answered_) return;
  const bool head_only = Header(":method") == "HEAD";
  if (!head_only && AcceptsGzip(Header("accept-encoding"))) CompressIfLarge(&response);
  response_ = std::move(response);
  if (!response_.produce) {
    response_.headers.emplace_back("content-length", std::to_string(response_.body.size()));
    current_ = std::move(response_.body);
    piece_ = current_;
  }
  Submit(!head_only && (response_.produce || !piece_.empty()));
  ArmWriteTimer();
}

void Http2Exchange::Submit(bool body) {
  answered_ = true;
  std::vector<std::pair<std::string, std::string>> fields = {{":status", std::to_string(response_.code)},
                                                             {"content-type", response_.content_type},
                                                             {"cache-control", "no-cache, private"}};
  for (const auto& [name, value] : response_.headers) {
    std::string small = absl::AsciiStrToLower(name);
    if (!OfHttp1(small)) fields.emplace_back(std::move(small), value);
  }
  std::vector<nghttp2_nv> pairs;
  pairs.reserve(fields.size());
  for (const auto& [name, value] : fields) pairs.push_back(Pair(name, value));
  nghttp2_data_provider source{};
  source.source.ptr = this;
  source.read_callback = ReadExchange;
  nghttp2_submit_response(host_->session(), stream_, pairs.data(), pairs.size(), body ? &source : nullptr);
  host_->Pump();
}

bool Http2Exchange::NextPiece() {
  if (watching_) {
    if (line_ != nullptr) unsent_ -= line_->size();
    line_ = nullptr;
    if (queue_.empty()) return false;
    line_ = std::move(queue_.front());
    queue_.pop_front();
    piece_ = *line_;
    return true;
  }
  if (!response_.produce) return false;
  current_.clear();
  if (!response_.produce(&current_)) response_.produce = nullptr;
  piece_ = current_;
  return true;
}

ssize_t Http2Exchange::Fill(uint8_t* out, size_t size, uint32_t* flags) {
  size_t done = 0;
  while (done < size) {
    if (piece_.empty()) {
      if (!NextPiece()) break;
      continue;
    }
    const size_t count = std::min(size - done, piece_.size());
    std::memcpy(out + done, piece_.data(), count);
    piece_.remove_prefix(count);
    done += count;
  }
  const bool more = !piece_.empty() || (watching_ ? !ending_ || !queue_.empty() : response_.produce != nullptr);
  if (!more) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (more && done == 0) {
    deferred_ = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (done > 0 && !watching_) ArmWriteTimer();
  return static_cast<ssize_t>(done);
}

// A client that takes nothing of an answer for so long has gone, or holds up what it asked for.
void Http2Exchange::ArmWriteTimer() {
  end_timer_.expires_after(Real(server_->options().write_timeout));
  end_timer_.async_wait([weak = weak_from_this()](error_code error) {
    const std::shared_ptr<Http2Exchange> self = weak.lock();
    if (error || self == nullptr || self->host_ == nullptr) return;
    if (self->host_->stuck()) return std::shared_ptr<ExchangeHost>(self->host_)->Close();
    self->Reset(NGHTTP2_CANCEL);
  });
}

void Http2Exchange::Reset(uint32_t code) {
  if (host_ == nullptr) return;
  nghttp2_submit_rst_stream(host_->session(), NGHTTP2_FLAG_NONE, stream_, code);
  host_->Pump();
}

// --- watches

void Http2Exchange::StartWatch(Response response) {
  const bool bookmarks = response.watch_bookmarks;
  const Duration timeout = response.watch_timeout;
  response_ = std::move(response);
  watching_ = true;
  if (timeout > Duration::zero()) {
    end_timer_.expires_after(Real(timeout));
    end_timer_.async_wait([weak = weak_from_this()](error_code error) {
      const std::shared_ptr<Http2Exchange> self = weak.lock();
      if (error || self == nullptr) return;
      self->ending_ = true;
      self->Flush();
    });
  }
  if (bookmarks) ArmBookmark();
  Submit(true);
}

void Http2Exchange::ArmBookmark() {
  bookmark_timer_.expires_after(Real(server_->options().bookmark_period));
  bookmark_timer_.async_wait([weak = weak_from_this()](error_code error) {
    const std::shared_ptr<Http2Exchange> self = weak.lock();
    if (error || self == nullptr || self->host_ == nullptr) return;
    self->server_->SendBookmark(self->id_, kOnlyWatch, self);
    self->ArmBookmark();
  });
}

void Http2Exchange::OnLine(uint64_t, const Line& line) {
  if (host_ == nullptr) return;
  if (line == nullptr) {
    ending_ = true;
    return;
  }
  unsent_ += line->size();
  queue_.push_back(line);
  // Others of the connection may read well.
  if (unsent_ > server_->options().max_unsent_watch_bytes) Reset(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Http2Exchange::Flush() {
  if (host_ == nullptr || !answered_) return;
  if (std::exchange(deferred_, false)) nghttp2_session_resume_data(host_->session(), stream_);
  host_->Pump();
}

void Http2Exchange::Gone() {
  if (host_ == nullptr) return;
  host_ = nullptr;
  --server_->exchanges();
  deadline_.cancel();
  bookmark_timer_.cancel();
  end_timer_.cancel();
  queue_.clear();
  if (asked_) server_->Forget(id_);
}

}  // namespace wavetank::fakekube::http
