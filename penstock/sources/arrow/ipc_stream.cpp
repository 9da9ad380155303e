#include "penstock/sources/arrow/ipc_stream.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "penstock/base/aligned.h"
#include "penstock/sources/arrow/flatbuffer.h"
#include "penstock/sources/arrow/ipc_types.h"

// A stream is a row of messages: four bytes of 0xff, the size of a header, the
// header, which is a flatbuffer (Message.fbs), and a body, which holds the
// buffers of all arrays of a record batch one after the other.

namespace penstock::arrow_files {
namespace {

enum class IpcHeader : std::uint8_t { none, schema, dictionary, batch };

struct IpcBody {
  AlignedBytes bytes;
  std::size_t size = 0;
};

struct IpcMessage {
  std::string header;
  IpcHeader kind = IpcHeader::none;
  std::size_t table = 0;  // where that of the kind is in the header
  std::shared_ptr<IpcBody> body = std::make_shared<IpcBody>();
};

std::optional<IpcMessage> next_message(const ReadBytes& read) {
  constexpr std::int32_t kMostHeader = 256 << 20;
  constexpr std::int64_t kMostBody = std::int64_t{16} << 30;  // a batch of rows
  std::uint32_t mark = 0;
  std::int32_t size = 0;
  read(&mark, sizeof(mark));
  read(&size, sizeof(size));
  if (mark != 0xffffffff || size < 0 || size > kMostHeader)
    throw std::runtime_error("a message does not begin as it should");
  if (size == 0) return std::nullopt;
  IpcMessage message;
  message.header.resize(static_cast<std::size_t>(size));
  read(message.header.data(), message.header.size());
  const Flatbuffer header(message.header);
  const std::size_t root = header.follow(0);
  message.kind = IpcHeader(header.value<std::uint8_t>(root, 1, 0));
  message.table = header.table_of(root, 2);
  const auto bytes = header.value<std::int64_t>(root, 3, 0);
  if (bytes < 0 || bytes > kMostBody)
    throw std::runtime_error("a message of an impossible size");
  message.body->size = static_cast<std::size_t>(bytes);
  if (bytes == 0) return message;
  message.body->bytes = allocate_aligned(message.body->size);
  if (message.body->bytes == nullptr) throw std::bad_alloc();
  read(message.body->bytes.get(), message.body->size);
  return message;
}

/// A tree of structs of the C data interface, which ends with its root.
template <class Node>
struct CTree {
  std::deque<Node> nodes;
  std::deque<std::vector<Node*>> children;
  std::deque<std::vector<const void*>> buffers;
  std::vector<std::shared_ptr<const void>> borrowed;
  std::deque<std::string> texts;

  Node& add() {
    Node& node = nodes.emplace_back();
    node.release = [](Node* one) { one->release = nullptr; };
    return node;
  }
  void adopt(Node& parent, std::vector<Node*> all) {
    parent.n_children = std::ssize(all);
    parent.children = children.emplace_back(std::move(all)).data();
  }
  const char* keep(std::string text) {
    return texts.emplace_back(std::move(text)).c_str();
  }
};

/// Hands the tree's first node over.
template <class Node>
void hand_over(std::unique_ptr<CTree<Node>> tree, Node* out) {
  *out = tree->nodes.front();
  out->private_data = tree.release();
  out->release = [](Node* root) {
    root->release = nullptr;
    delete static_cast<CTree<Node>*>(root->private_data);
  };
}

ArrowSchema& add_schema(CTree<ArrowSchema>& tree, const IpcField& field) {
  ArrowSchema& schema = tree.add();
  schema.format = tree.keep(field.format);
  schema.name = tree.keep(field.name);
  schema.flags = field.flags;
  std::vector<ArrowSchema*> children;
  for (const IpcField& child : field.children)
    children.push_back(&add_schema(tree, child));
  tree.adopt(schema, std::move(children));
  if (!field.values.empty())
    schema.dictionary = &add_schema(tree, field.values[0]);
  return schema;
}

/// A record batch, or a dictionary, that was read.
struct ReadBatch {
  std::string header;
  std::size_t table;
  std::shared_ptr<IpcBody> body;
};
using Dictionaries = std::map<std::int64_t, std::shared_ptr<ReadBatch>>;

/// How many buffers a field has, without those of its children; of a view
/// without those of its values.
std::size_t buffers_of(const IpcField& field) {
  const std::string& format = field.format;
  if (format == "n") return 0;
  if (format == "+s" || format.starts_with("+w:")) return 1;
  if (format == "+l" || format == "+L" || format == "+m") return 2;
  if (format.starts_with('+'))
    throw std::runtime_error("rows of a type that is not read");
  const bool has_offsets =
      format == "u" || format == "U" || format == "z" || format == "Z";
  return has_offsets ? 3 : 2;
}

/// Makes the arrays of a record batch, whose nodes and buffers are in the order
/// of the fields, parents first.
class ArrayMaker {
 public:
  ArrayMaker(CTree<ArrowArray>& tree, const std::shared_ptr<ReadBatch>& batch,
             const Dictionaries& dictionaries)
      : tree_(tree),
        of_(batch->header),
        body_(*batch->body),
        dictionaries_(dictionaries),
        nodes_(of_.vector_of(batch->table, 1, kPair)),
        buffers_(of_.vector_of(batch->table, 2, kPair)),
        views_(of_.vector_of(batch->table, 4, sizeof(std::int64_t))) {
    if (of_.field(batch->table, 3) != 0)
      throw std::runtime_error("its rows are compressed");
    tree_.borrowed.push_back(batch);
  }

  ArrowArray& add(const IpcField& field) {
    ArrowArray& array = tree_.add();
    if (node_ == nodes_.count) throw std::out_of_range("a node is missing");
    const std::size_t node = nodes_.first + kPair * node_++;
    array.length = of_.number<std::int64_t>(node);
    array.null_count = of_.number<std::int64_t>(node + 8);
    add_buffers(field, array);
    std::vector<ArrowArray*> children;
    for (const IpcField& child : field.children)
      children.push_back(&add(child));
    tree_.adopt(array, std::move(children));
    if (field.dictionary >= 0) array.dictionary = &dictionary_of(field);
    return array;
  }

 private:
  static constexpr std::size_t kPair = 16;  // two numbers of 64 bits

  void add_buffers(const IpcField& field, ArrowArray& array) {
    auto& list = tree_.buffers.emplace_back();
    for (std::size_t left = buffers_of(field); left > 0; --left)
      list.push_back(next_buffer().first);
    // Without nulls there may be no bits, and without rows nothing at all.
    if (!list.empty() && array.null_count == 0) list[0] = nullptr;
    if (field.format.starts_with('v')) add_views(list);
    array.n_buffers = std::ssize(list);
    array.buffers = list.data();
  }

  /// The values of views, and behind them the sizes of these.
  void add_views(std::vector<const void*>& list) {
    if (view_ == views_.count) throw std::out_of_range("a view is missing");
    auto left = of_.number<std::int64_t>(views_.first + 8 * view_++);
    auto sizes = std::make_shared<std::vector<std::int64_t>>();
    for (; left > 0; --left) {
      const auto [bytes, size] = next_buffer();
      list.push_back(bytes);
      sizes->push_back(size);
    }
    list.push_back(sizes->data());
    tree_.borrowed.push_back(std::move(sizes));
  }

  std::pair<const void*, std::int64_t> next_buffer() {
    static constexpr std::int64_t kNothing[8] = {};  // an offset of no rows
    if (buffer_ == buffers_.count) throw std::out_of_range("no more buffers");
    const std::size_t place = buffers_.first + kPair * buffer_++;
    const auto offset = of_.number<std::int64_t>(place);
    const auto size = of_.number<std::int64_t>(place + 8);
    const auto all = static_cast<std::int64_t>(body_.size);
    if (offset < 0 || size < 0 || offset > all || size > all - offset)
      throw std::out_of_range("a buffer is beyond its body");
    if (size == 0) return {kNothing, 0};
    return {body_.bytes.get() + offset, size};
  }

  ArrowArray& dictionary_of(const IpcField& field) {
    const auto found = dictionaries_.find(field.dictionary);
    if (found == dictionaries_.end())
      throw std::runtime_error("a dictionary is missing");
    return ArrayMaker(tree_, found->second, dictionaries_).add(field.values[0]);
  }

  CTree<ArrowArray>& tree_;
  const Flatbuffer of_;
  const IpcBody& body_;
  const Dictionaries& dictionaries_;
  const Flatbuffer::Vector nodes_, buffers_, views_;
  std::size_t node_ = 0, buffer_ = 0, view_ = 0;
};

/// The stream as one of the C stream interface.
class IpcStream {
 public:
  explicit IpcStream(const ReadBytes& read) : read_(read) {}

  ArrowArrayStream stream() {
    return {
        .get_schema =
            [](ArrowArrayStream* stream, ArrowSchema* out) {
              return self(stream).guarded(
                  [&](IpcStream& of) { of.read_schema(out); });
            },
        .get_next =
            [](ArrowArrayStream* stream, ArrowArray* out) {
              *out = {};
              return self(stream).guarded(
                  [&](IpcStream& of) { of.read_batch(out); });
            },
        .get_last_error = [](ArrowArrayStream*) -> const char* {
          return "see failure()";
        },
        .release = [](ArrowArrayStream* stream) { stream->release = nullptr; },
        .private_data = this};
  }
  std::exception_ptr failure() const { return failure_; }

 private:
  static IpcStream& self(ArrowArrayStream* stream) {
    return *static_cast<IpcStream*>(stream->private_data);
  }
  template <class Work>
  int guarded(Work work) {
    try {
      work(*this);
      return 0;
    } catch (...) {
      failure_ = std::current_exception();
      return EIO;
    }
  }

  void read_schema(ArrowSchema* out) {
    const std::optional<IpcMessage> message = next_message(read_);
    if (!message || message->kind != IpcHeader::schema)
      throw std::runtime_error("it does not begin with a schema");
    const Flatbuffer of(message->header);
    root_ = {.format = "+s", .children = ipc_fields(of, message->table)};
    auto tree = std::make_unique<CTree<ArrowSchema>>();
    add_schema(*tree, root_);
    tree->nodes.front().metadata = tree->keep(ipc_metadata(of, message->table));
    hand_over(std::move(tree), out);
  }

  void read_batch(ArrowArray* out) {
    while (std::optional<IpcMessage> message = next_message(read_)) {
      auto batch = std::make_shared<ReadBatch>(
          ReadBatch{std::move(message->header), message->table,
                    std::move(message->body)});
      if (message->kind == IpcHeader::batch) {
        make_arrays(batch, out);
        return;
      }
      if (message->kind != IpcHeader::dictionary)
        throw std::runtime_error("a message of an unexpected kind");
      const Flatbuffer of(batch->header);
      if (of.value<std::uint8_t>(batch->table, 2, 0) != 0)
        throw std::runtime_error("a dictionary that adds to another");
      const auto number = of.value<std::int64_t>(batch->table, 0, 0);
      batch->table = of.table_of(batch->table, 1);
      dictionaries_[number] = std::move(batch);
    }
  }

  void make_arrays(const std::shared_ptr<ReadBatch>& batch, ArrowArray* out) {
    auto tree = std::make_unique<CTree<ArrowArray>>();
    ArrowArray& whole = tree->add();
    whole.length =
        Flatbuffer(batch->header).value<std::int64_t>(batch->table, 0, 0);
    whole.n_buffers = 1;
    whole.buffers = tree->buffers.emplace_back(1, nullptr).data();
    ArrayMaker maker(*tree, batch, dictionaries_);
    std::vector<ArrowArray*> columns;
    for (const IpcField& field : root_.children)
      columns.push_back(&maker.add(field));
    tree->adopt(whole, std::move(columns));
    hand_over(std::move(tree), out);
  }

  const ReadBytes& read_;
  IpcField root_;
  Dictionaries dictionaries_;
  std::exception_ptr failure_;
};

}  // namespace

std::shared_ptr<const ArrowTable> read_ipc_stream(const ReadBytes& read) {
  IpcStream ipc(read);
  ArrowArrayStream stream = ipc.stream();
  try {
    return ArrowTable::read(stream);
  } catch (...) {
    if (ipc.failure()) std::rethrow_exception(ipc.failure());
    throw;
  }
}

}  // namespace penstock::arrow_files
