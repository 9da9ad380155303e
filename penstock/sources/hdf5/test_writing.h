#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// Writes files of HDF5 for tests.
namespace penstock::hdf5 {

/// How a data set is laid out.
struct Written {
  hsize_t chunk = 0;     ///< rows; 0: contiguous
  unsigned deflate = 0;  ///< its level; 0: none
  bool shuffle = false;
  bool checksum = false;
  hsize_t rows = 0;  ///< more than are written; 0: as many
};

class TestFile {
 public:
  explicit TestFile(const std::string& path)
      : file_(
            H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  /// One that is open; it is closed with this.
  explicit TestFile(hid_t file) : file_(file) {}
  ~TestFile() { H5Fclose(file_); }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;

  /// Rows of `each` values; texts are of variable length.
  template <class Value>
  void write(const std::string& name, const std::vector<Value>& values,
             Written how = {}, hsize_t each = 1) {
    const hsize_t dims[] = {values.size() / each, each};
    const int rank = each == 1 ? 1 : 2;
    hid_t type = memory_type<Value>();
    hid_t space = H5Screate_simple(rank, dims, nullptr);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (how.chunk > 0 && !values.empty()) {
      const hsize_t chunk[] = {std::min(how.chunk, std::max(dims[0], how.rows)),
                               each};
      H5Pset_chunk(properties, rank, chunk);
      if (how.shuffle) H5Pset_shuffle(properties);
      if (how.deflate > 0) H5Pset_deflate(properties, how.deflate);
      if (how.checksum) H5Pset_fletcher32(properties);
    }
    const hsize_t grown[] = {how.rows, each};
    if (how.rows > 0) {
      H5Sclose(space);
      space = H5Screate_simple(rank, grown, nullptr);
    }
    hid_t set = H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT,
                           properties, H5P_DEFAULT);
    if constexpr (std::is_same_v<Value, std::string>) {
      std::vector<const char*> texts;
      for (const std::string& text : values) texts.push_back(text.c_str());
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data());
      H5Tclose(type);
    } else {
      hid_t part = H5Scopy(space),
            memory = H5Screate_simple(rank, dims, nullptr);
      const hsize_t start[] = {0, 0};
      H5Sselect_hyperslab(part, H5S_SELECT_SET, start, nullptr, dims, nullptr);
      H5Dwrite(set, type, memory, part, H5P_DEFAULT, values.data());
      H5Sclose(memory);
      H5Sclose(part);
    }
    H5Dclose(set);
    H5Pclose(properties);
    H5Sclose(space);
  }

  /// Texts of a fixed size, as they lie in the file, filled up as `padding`
  /// says.
  void write_fixed(const std::string& name, std::size_t bytes,
                   const std::vector<std::string>& texts, H5T_str_t padding) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, bytes);
    H5Tset_strpad(type, padding);
    std::string all;
    for (std::string text : texts) {
      text.resize(bytes, padding == H5T_STR_SPACEPAD ? ' ' : '\0');
      all += text;
    }
    write_list(name, type, texts.size(), all.data());
    write_attribute(name, "first", type, H5Screate(H5S_SCALAR), all.data());
    H5Tclose(type);
  }

  /// An attribute of a data set or a group, of these dimensions.
  template <class Value>
  void attribute(const std::string& of, const std::string& name,
                 const std::vector<Value>& values,
                 const std::vector<hsize_t>& dims) {
    write_attribute(
        of, name, memory_type<Value>(),
        H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
        values.data());
  }

  /// One number as an attribute of a type of its own.
  void number(const std::string& of, const std::string& name, hid_t type,
              double value) {
    double converted[] = {value};
    H5Tconvert(H5T_NATIVE_DOUBLE, type, 1, converted, nullptr, H5P_DEFAULT);
    write_attribute(of, name, type, H5Screate(H5S_SCALAR), converted);
  }
  void text(const std::string& of, const std::string& name,
            const std::string& value) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, value.size());
    write_attribute(of, name, type, H5Screate(H5S_SCALAR), value.data());
    H5Tclose(type);
  }
  /// Rows of one number of this type.
  void write_as(const std::string& name, hid_t type,
                std::vector<double> values) {
    const std::size_t count = values.size();
    H5Tconvert(H5T_NATIVE_DOUBLE, type, count, values.data(), nullptr,
               H5P_DEFAULT);
    write_list(name, type, count, values.data());
  }

  void group(const std::string& name) {
    H5Gclose(
        H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }

  /// Bytes that are an enum of these names and values.
  void write_enum(const std::string& name,
                  const std::vector<std::pair<std::string, int>>& members,
                  const std::vector<signed char>& values) {
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    for (const auto& [member, number] : members) {
      const auto small = static_cast<signed char>(number);
      H5Tenum_insert(type, member.c_str(), &small);
    }
    write_list(name, type, values.size(), values.data());
    H5Tclose(type);
  }

 private:
  /// A data set of one dimension, whose values lie as in memory.
  void write_list(const std::string& name, hid_t type, hsize_t count,
                  const void* values) {
    hid_t space = H5Screate_simple(1, &count, nullptr);
    hid_t set = H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT,
                           H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
  }
  /// Closes the space.
  void write_attribute(const std::string& of, const std::string& name,
                       hid_t type, hid_t space, const void* values) {
    hid_t made = H5Acreate_by_name(file_, of.c_str(), name.c_str(), type, space,
                                   H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(made, type, values);
    H5Aclose(made);
    H5Sclose(space);
  }
  template <class Value>
  static hid_t memory_type() {
    if constexpr (std::is_same_v<Value, std::string>) {
      hid_t type = H5Tcopy(H5T_C_S1);
      H5Tset_size(type, H5T_VARIABLE);
      return type;
    } else if constexpr (std::is_same_v<Value, double>) {
      return H5T_NATIVE_DOUBLE;
    } else if constexpr (std::is_same_v<Value, float>) {
      return H5T_NATIVE_FLOAT;
    } else {
      return H5T_NATIVE_INT64;
    }
  }

  hid_t file_;
};

}  // namespace penstock::hdf5
