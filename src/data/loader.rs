//! Structures of the loader: modules, assemblies, loader allocators and their heaps.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `AppDomain` (appdomain.hpp).
    AppDomain {
        /// .NET 11: an `ArrayListBase` of `Assembly`.
        AssemblyList: Inline,
        /// Up to .NET 10: an `ArrayListBase` of `DomainAssembly`.
        DomainAssemblyList: Inline,
        /// .NET 8: an `SHash` of `MethodDescVersioningState`, by MethodDesc.
        MethodDescVersioningStates: Inline,
    }

    /// `DomainAssembly` (domainassembly.h).
    DomainAssembly {
        Assembly: Addr,
    }

    /// `Assembly` (assembly.hpp).
    Assembly {
        Module: Addr,
    }

    /// `Module` (ceeload.h).
    Module {
        Assembly: Addr,
        PEAssembly: Addr,
        /// The base address of the image.
        Base: Addr,
        /// Path in UTF-16.
        Path: Addr,
        FileName: Addr,
        /// Name in UTF-8.
        SimpleName: Addr,
        LoaderAllocator: Addr,
        Flags: u32,
        /// `ModuleLookupMap`s, by kind of token.
        TypeDefToMethodTableMap: Inline,
        TypeRefToMethodTableMap: Inline,
        FieldDefToDescMap: Inline,
        MethodDefToDescMap: Inline,
        MemberRefToDescMap: Inline,
        /// .NET 9 and later: the `DynamicMetadata` of a module without an image; null in other modules.
        DynamicMetadata: Addr,
        /// .NET 8, in a `ReflectionModule`: the `ReflectionDynamicMetadata`.
        ReflectionDynamicMetadata: Addr,
        /// The `EETypeHashTable` of generic instances.
        AvailableTypeParams: Addr,
        /// .NET 8: the statics of the module.
        DomainLocalModule: Addr,
        ReadyToRunInfo: Addr,
    }

    /// `PEAssembly` (peassembly.h).
    PEAssembly {
        /// The native side of the assembly load context.
        AssemblyBinder: Addr,
        PEImage: Addr,
    }

    /// `PEImage` (peimage.h).
    PEImage {
        /// The `PEImageLayout` of each kind.
        LoadedImageLayout: Addr,
        FlatImageLayout: Addr,
    }

    /// `PEImageLayout` (peimagelayout.h).
    PEImageLayout {
        Base: Addr,
        Size: u32,
    }

    /// The path of a [`PEImage`], in UTF-16.
    PEImagePath {
        ByteCount: u32,
        Buffer: Addr,
    }

    /// `DynamicMetadata` (ceeload.h).
    DynamicMetadata {
        Size: u32,
        Data: Inline,
    }

    /// .NET 8: the `SBuffer` with the metadata of a `ReflectionModule` (ceeload.h).
    ReflectionDynamicMetadata {
        Size: u32,
        Buffer: Addr,
    }

    /// `ArrayListBase` (arraylist.h).
    ArrayListBase {
        Count: u32,
        FirstBlock: Inline,
    }

    /// `ArrayListBlock` (arraylist.h).
    ArrayListBlock {
        Next: Addr,
        Size: u32,
        ArrayStart: Inline,
    }

    /// `LookupMapBase` (ceeload.h): values by row of a metadata table.
    ModuleLookupMap {
        Next: Addr,
        TableData: Addr,
        Count: u32,
        /// The mask of flag bits in every entry. Only the first map of a chain has this field.
        SupportedFlagsMask: Word,
    }

    /// `EETypeHashTable` (typehash.h, dacenumerablehash.h).
    EETypeHashTable {
        Buckets: Addr,
        Count: u32,
        /// The type of an entry, with a flag in bit 0.
        VolatileEntryValue: Word,
        VolatileEntryNextEntry: Addr,
    }

    /// `LoaderAllocator` (loaderallocator.hpp).
    LoaderAllocator {
        /// A handle to the managed `LoaderAllocator` of a collectible assembly.
        ObjectHandle: Addr,
        CallCountingManager: Addr,
        /// `LoaderHeap`s.
        HighFrequencyHeap: Addr,
        LowFrequencyHeap: Addr,
        StaticsHeap: Addr,
        StubHeap: Addr,
        ExecutableHeap: Addr,
        FixupPrecodeHeap: Addr,
        NewStubPrecodeHeap: Addr,
        DynamicHelpersStubHeap: Addr,
        VirtualCallStubManager: Addr,
    }

    /// `VirtualCallStubManager` (virtualcallstub.h).
    VirtualCallStubManager {
        /// `LoaderHeap`s.
        IndcellHeap: Addr,
        CacheEntryHeap: Addr,
    }

    /// `LoaderHeap` (loaderheap.h).
    LoaderHeap {
        FirstBlock: Addr,
    }

    /// `LoaderHeapBlock` (loaderheap.h).
    LoaderHeapBlock {
        Next: Addr,
        VirtualAddress: Addr,
        VirtualSize: Word,
    }
}
